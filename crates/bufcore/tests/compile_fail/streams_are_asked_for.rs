use bufcore::{ByteSink, ByteSource};

fn to_anything<T>(source: &mut impl ByteSource, sink: &mut T) {
    bufcore::copy(source, sink);
}

fn from_anything<T>(source: &mut T, sink: &mut impl ByteSink) {
    bufcore::copy(source, sink);
}

fn main() {}
