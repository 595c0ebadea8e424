use bufmirror::MessageQueue;

fn main() {
    let message = {
        let (sender, receiver) = MessageQueue::new(1).unwrap().split();
        sender.send(b"hello").unwrap();
        receiver.recv().unwrap()
    };
    drop(message.len());
}
