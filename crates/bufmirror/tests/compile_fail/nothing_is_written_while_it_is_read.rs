use bufmirror::MirrorRing;

fn main() {
    let mut ring = MirrorRing::new(1).unwrap();
    let filled = ring.peek();
    ring.put(b"more").unwrap();
    println!("{filled:?}");
}
