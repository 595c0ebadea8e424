//! What types are to be, and what they must not be: checked by the compiler.

/// Each of the types on the right has all traits on the left, or else this does not compile.
///
/// ```
/// testkit::have!(Send, Sync => u8, String);
/// ```
#[macro_export]
macro_rules! have {
    (@one [$($bound:ident)+] $type:ty) => {
        const _: fn() = || {
            fn has<T: ?Sized $(+ $bound)+>() {}
            has::<$type>();
        };
    };
    (@all $bounds:tt $($type:ty)+) => {
        $($crate::have!(@one $bounds $type);)+
    };
    ($($bound:ident),+ => $($type:ty),+ $(,)?) => {
        $crate::have!(@all [$($bound)+] $($type)+);
    };
}

/// None of the types on the right has the trait on the left, or else this does not compile.
///
/// ```
/// testkit::lack!(Send => std::rc::Rc<u8>, *const u8);
/// ```
///
/// ```compile_fail
/// testkit::lack!(Send => std::rc::Rc<u8>, u8);
/// ```
#[macro_export]
macro_rules! lack {
    ($bound:ident => $($type:ty),+ $(,)?) => {
        $(const _: fn() = || {
            // With the trait there are two of these, and the compiler cannot tell which is meant.
            trait Lacks<Which> {
                fn it() {}
            }
            struct Has;
            impl<T: ?Sized> Lacks<()> for T {}
            impl<T: ?Sized + $bound> Lacks<Has> for T {}
            <$type as Lacks<_>>::it();
        };)+
    };
}
