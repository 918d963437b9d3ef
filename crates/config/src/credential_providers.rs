//! `CredentialProviderConfig`: which programs give credentials for which images. Pure.
//!
//! Source of the rules: `pkg/credentialprovider/plugin/config.go` of Kubernetes 1.36.

use std::{collections::BTreeSet, time::Duration};

use rubelet_base::duration::parse_go;
use rubelet_yaml::documents;
use serde::Deserialize;

/// Versions of the configuration.
const CONFIG_VERSIONS: [&str; 3] = [
    "kubelet.config.k8s.io/v1",
    "kubelet.config.k8s.io/v1beta1",
    "kubelet.config.k8s.io/v1alpha1",
];
/// Versions of what is said to a program and by it.
const PROVIDER_VERSIONS: [&str; 3] = [
    "credentialprovider.kubelet.k8s.io/v1",
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
];

/// A program that gives credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialProvider {
    /// `name`: that of the program in the folder of plugins.
    pub name: String,
    /// `matchImages`: it is asked for images that one of them fits.
    pub match_images: Vec<String>,
    /// `defaultCacheDuration`: how long an answer that says nothing of it is kept.
    pub default_cache_duration: Duration,
    /// `apiVersion` of what is said to it and by it.
    pub api_version: String,
    /// `args`.
    pub args: Vec<String>,
    /// `env`, beside the agent's own.
    pub env: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    providers: Option<Vec<Written>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    name: String,
    #[serde(default)]
    match_images: Option<Vec<String>>,
    default_cache_duration: Option<String>,
    api_version: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<Variable>>,
    #[serde(default)]
    token_attributes: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

/// Reads one file.
///
/// # Errors
/// What is wrong, with line and field where there is one; without the path.
pub fn parse_credential_providers(text: &str) -> Result<Vec<CredentialProvider>, String> {
    let mut documents = documents(text).map_err(|error| error.to_string())?;
    if documents.len() != 1 {
        return Err("must be one document with kind: CredentialProviderConfig".to_owned());
    }
    let file: File = documents
        .remove(0)
        .decode_strict()
        .map_err(|error| error.to_string())?;
    if file.kind != "CredentialProviderConfig" || !CONFIG_VERSIONS.contains(&&*file.api_version) {
        return Err(format!(
            "must have kind: CredentialProviderConfig and one of the versions {}, has {} {}",
            CONFIG_VERSIONS.join(", "),
            file.api_version,
            file.kind
        ));
    }
    let written = file.providers.unwrap_or_default();
    let providers = written.into_iter().enumerate().map(|(index, provider)| {
        let at =
            |(field, problem): (&str, String)| format!("providers[{index}].{field}: {problem}");
        checked(provider).map_err(at)
    });
    providers.collect()
}

fn checked(written: Written) -> Result<CredentialProvider, (&'static str, String)> {
    let name = written.name;
    if name.is_empty() || [".", ".."].contains(&&*name) || name.contains(['/', ' ']) {
        let problem = format!("must be the name of a program, without / and blanks, is {name:?}");
        return Err(("name", problem));
    }
    if !PROVIDER_VERSIONS.contains(&&*written.api_version) {
        let known = PROVIDER_VERSIONS.join(", ");
        let problem = format!("must be one of {known}, is {:?}", written.api_version);
        return Err(("apiVersion", problem));
    }
    if written.token_attributes.is_some() {
        let problem = "service account tokens are not given to plugins yet; leave the field out, or use \
                       a plugin with credentials of the node";
        return Err(("tokenAttributes", problem.to_owned()));
    }
    let match_images = written.match_images.unwrap_or_default();
    if match_images.is_empty() || match_images.iter().any(String::is_empty) {
        let problem = "must have at least one image pattern, such as *.registry.example.com";
        return Err(("matchImages", problem.to_owned()));
    }
    let duration = written.default_cache_duration.unwrap_or_default();
    let default_cache_duration = parse_go(&duration).map_err(|_| {
        let problem = format!("must be a duration such as 10m, is {duration:?}");
        ("defaultCacheDuration", problem)
    })?;
    let env = written.env.unwrap_or_default().into_iter();
    Ok(CredentialProvider {
        name,
        match_images,
        default_cache_duration,
        api_version: written.api_version,
        args: written.args.unwrap_or_default(),
        env: env
            .map(|variable| (variable.name, variable.value))
            .collect(),
    })
}

/// All files together, in their order.
///
/// # Errors
/// There is no provider, or two have one name.
pub fn merge_credential_providers(
    files: Vec<Vec<CredentialProvider>>,
) -> Result<Vec<CredentialProvider>, String> {
    let providers: Vec<CredentialProvider> = files.into_iter().flatten().collect();
    let mut names = BTreeSet::new();
    if let Some(again) = providers.iter().find(|one| !names.insert(&one.name)) {
        return Err(format!("two providers have the name {:?}", again.name));
    }
    match providers.is_empty() {
        true => Err("must have at least one provider".to_owned()),
        false => Ok(providers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n";

    fn provider(fields: &str) -> String {
        let version = "apiVersion: credentialprovider.kubelet.k8s.io/v1";
        format!(
            "{HEAD}providers:\n- {{name: ecr, matchImages: ['*.example.com'], defaultCacheDuration: 12h, {version}{fields}}}\n"
        )
    }

    #[test]
    fn a_configuration_as_clouds_write_it_is_read() {
        let text = provider(", args: [get], env: [{name: A, value: b}]");
        let found = parse_credential_providers(&text).unwrap();
        assert_eq!(
            found,
            [CredentialProvider {
                name: "ecr".to_owned(),
                match_images: vec!["*.example.com".to_owned()],
                default_cache_duration: Duration::from_secs(12 * 3600),
                api_version: "credentialprovider.kubelet.k8s.io/v1".to_owned(),
                args: vec!["get".to_owned()],
                env: vec![("A".to_owned(), "b".to_owned())],
            }]
        );
        let twice = merge_credential_providers(vec![found.clone(), found.clone()]);
        assert_eq!(twice.unwrap_err(), "two providers have the name \"ecr\"");
        assert_eq!(
            merge_credential_providers(vec![found.clone()]).unwrap(),
            found
        );
    }

    #[test]
    fn mistakes_are_told_with_their_field() {
        for (text, part) in [
            (
                provider("").replace("ecr", "../ecr"),
                "providers[0].name: must be the name of a program",
            ),
            (
                provider("").replace("12h", "soon"),
                "providers[0].defaultCacheDuration: must be a duration",
            ),
            (
                provider("").replace("'*.example.com'", ""),
                "providers[0].matchImages: must have at least one",
            ),
            (
                provider("").replace("k8s.io/v1}", "k8s.io/v9}"),
                "providers[0].apiVersion: must be one of",
            ),
            (
                provider(", tokenAttributes: {cacheType: Token}"),
                "providers[0].tokenAttributes: service account tokens",
            ),
            (provider(", tokens: x"), "tokens"),
            (
                provider("").replace("CredentialProviderConfig", "Config"),
                "must have kind: CredentialProviderConfig",
            ),
            (String::new(), "must be one document"),
        ] {
            let error = parse_credential_providers(&text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            merge_credential_providers(vec![Vec::new()])
                .unwrap_err()
                .contains("at least one provider")
        );
    }
}
