//! What every picture of results is made of: numbers as people read them, scales, colours, and a
//! pen for SVG.

pub(crate) mod colours;
pub mod number;
pub(crate) mod scale;
pub(crate) mod svg;
