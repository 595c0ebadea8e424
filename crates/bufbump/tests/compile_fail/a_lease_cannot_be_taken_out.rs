use bufbump::BumpPool;

fn main() {
    let buf = BumpPool::new().unwrap().acquire(1).unwrap();
    let _taken = *buf.lease();
}
