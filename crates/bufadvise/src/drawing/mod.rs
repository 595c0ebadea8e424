//! The parts that every picture of results is made of: numbers as people read them, scales,
//! colours, and a pen for SVG.

pub mod colours;
pub mod number;
pub mod scale;
pub mod svg;
