use bufmirror::MirrorRing;

fn main() {
    let mut ring = MirrorRing::new(1).unwrap();
    let room = ring.reserve(5).unwrap();
    let more = ring.reserve(5).unwrap();
    room[0] = more[0];
}
