use bufbump::BumpLease;

fn main() {
    let _made = BumpLease { tagged: std::ptr::null_mut() };
}
