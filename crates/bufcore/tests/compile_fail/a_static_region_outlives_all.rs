use bufcore::Region;

fn main() {
    let mut memory = [0; 100];
    let region = Region::from_static(&mut memory);
    drop(region);
}
