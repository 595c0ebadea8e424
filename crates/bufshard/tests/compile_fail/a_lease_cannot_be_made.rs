use bufshard::ShardLease;

fn main() {
    let _made = ShardLease { tagged: std::ptr::null_mut() };
}
