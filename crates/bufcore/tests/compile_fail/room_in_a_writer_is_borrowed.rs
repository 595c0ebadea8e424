use bufcore::{HeapPool, Writer};

fn main() {
    let mut writer = Writer::new(HeapPool::new());
    let room = writer.writable(10).unwrap();
    let frame = writer.finish();
    room[0] = 1;
    drop(frame);
}
