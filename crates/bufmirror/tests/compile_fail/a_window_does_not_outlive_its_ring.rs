use bufmirror::MirrorRing;

fn main() {
    let filled = {
        let ring = MirrorRing::new(1).unwrap();
        ring.peek()
    };
    println!("{filled:?}");
}
