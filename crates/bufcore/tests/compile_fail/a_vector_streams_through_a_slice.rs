fn main() {
    let mut vector = vec![1, 2, 3];
    let mut slice = &[4, 5][..];
    bufcore::copy(&mut slice, &mut vector);
    bufcore::copy(&mut vector, &mut slice);
}
