//! What every picture of results is made of: scales, colours, and a pen for SVG.

pub mod colours;
pub mod scale;
pub mod svg;
