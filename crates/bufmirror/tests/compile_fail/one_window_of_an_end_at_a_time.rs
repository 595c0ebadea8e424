fn main() {
    let (mut producer, mut consumer) = bufmirror::channel(1).unwrap();
    let room = producer.reserve(5).unwrap();
    producer.commit(5);
    room[0] = 1;
    let filled = consumer.peek();
    consumer.consume(5);
    drop(filled[0]);
}
