fn main() {
    let (producer, consumer) = bufmirror::channel(1).unwrap();
    drop((producer.clone(), consumer.clone()));
}
