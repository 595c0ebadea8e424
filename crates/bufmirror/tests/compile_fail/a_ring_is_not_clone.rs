use bufmirror::MirrorRing;

fn main() {
    let ring = MirrorRing::new(1).unwrap();
    let _ = ring.clone();
}
