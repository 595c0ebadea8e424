use bufmirror::messages;

fn main() {
    let message = {
        let (sender, receiver) = messages::channel(1).unwrap();
        sender.send(b"hello").unwrap();
        receiver.recv().unwrap()
    };
    drop(message.len());
}
