//! The rules for one package.

use super::Finding;
use crate::packages::Package;
use crate::strategies::Strategy;

/// Checks `package`, one of `all`.
pub(super) fn check(package: &Package, all: &[Package], strategies: &[Strategy]) -> Vec<Finding> {
    let mut messages = Vec::new();
    if package.published {
        let is_strategy = |name: &str| strategies.iter().any(|strategy| strategy.package == name);
        for dependency in
            package.dependencies.iter().filter(|one| all.iter().any(|other| other.name == one.name))
        {
            let name = &dependency.name;
            if dependency.is_dev && dependency.has_path && dependency.version != "*" {
                messages
                    .push(format!("dev-dependency {name} has a version: publishing would need {name} first"));
            }
            // In tests any pool will do, and some need one.
            if !dependency.is_dev && is_strategy(&package.name) && is_strategy(name) {
                messages.push(format!("depends on the strategy {name}; what both need moves down a layer"));
            }
        }
        if !package.features.is_empty() && !package.documents_all {
            messages.push("has features, but docs.rs is not told to show all".to_owned());
        }
    }
    messages.into_iter().map(|message| Finding::at(0, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::Dependency;

    fn package(name: &str, dependencies: Vec<Dependency>) -> Package {
        Package { name: name.to_owned(), published: true, dependencies, ..Package::default() }
    }

    /// How much is said about a strategy with this one dependency.
    fn said(name: &str, version: &str, is_dev: bool) -> usize {
        let dependency =
            Dependency { name: name.to_owned(), version: version.to_owned(), is_dev, has_path: true };
        let package = package("bufslot", vec![dependency]);
        let all = ["bufcore", "bufring"].map(|name| self::package(name, Vec::new()));
        let strategy = |name: &str| Strategy { name: name.to_owned(), package: format!("buf{name}") };
        check(&package, &all, &[strategy("slot"), strategy("ring")]).len()
    }

    #[test]
    fn dependencies_point_down_and_tests_have_no_versions() {
        assert_eq!(said("bufcore", "^0.1.0", false), 0);
        assert_eq!(said("libc", "^0.2", true), 0);
        assert_eq!(said("bufring", "^0.1.0", false), 1);
        assert_eq!(said("bufring", "*", true), 0);
        assert_eq!(said("bufcore", "^0.1.0", true), 1);
    }

    #[test]
    fn features_are_documented() {
        let mut package = package("bufcore", Vec::new());
        package.features = [("std".to_owned(), Vec::new())].into();
        assert_eq!(check(&package, &[], &[]).len(), 1);
        package.documents_all = true;
        assert_eq!(check(&package, &[], &[]), []);
    }
}
