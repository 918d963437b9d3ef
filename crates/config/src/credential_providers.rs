//! `CredentialProviderConfig`: which plugins supply credentials for which images. Pure.
//!
//! Source of the rules: `pkg/credentialprovider/plugin/config.go` of Kubernetes 1.36.

mod token_attributes;

use std::{collections::BTreeSet, time::Duration};

use rubelet_base::duration::parse_go;
use rubelet_yaml::documents;
use serde::Deserialize;

pub use token_attributes::{TokenAttributes, TokenCacheType};

/// Versions of the configuration.
const CONFIG_VERSIONS: [&str; 3] = [
    "kubelet.config.k8s.io/v1",
    "kubelet.config.k8s.io/v1beta1",
    "kubelet.config.k8s.io/v1alpha1",
];
/// Versions of the protocol between the kubelet and a plugin.
const PROVIDER_VERSIONS: [&str; 3] = [
    "credentialprovider.kubelet.k8s.io/v1",
    "credentialprovider.kubelet.k8s.io/v1beta1",
    "credentialprovider.kubelet.k8s.io/v1alpha1",
];

/// A plugin that supplies credentials for registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialProvider {
    /// `name`: file name of the plugin in the directory of plugins.
    pub name: String,
    /// `matchImages`: patterns of images for which the plugin is run.
    pub match_images: Vec<String>,
    /// `defaultCacheDuration`: how long a response without a cache duration is cached.
    pub default_cache_duration: Duration,
    /// `apiVersion` of requests and responses.
    pub api_version: String,
    /// `args`.
    pub args: Vec<String>,
    /// `env`, in addition to the agent's own.
    pub env: Vec<(String, String)>,
    /// `tokenAttributes`: the plugin receives tokens of the pods' service accounts. `None`: its
    /// credentials belong to the node.
    pub token_attributes: Option<TokenAttributes>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigFile {
    api_version: String,
    kind: String,
    #[serde(default)]
    providers: Option<Vec<ProviderFields>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProviderFields {
    name: String,
    #[serde(default)]
    match_images: Option<Vec<String>>,
    default_cache_duration: Option<String>,
    api_version: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<EnvVar>>,
    #[serde(default)]
    token_attributes: Option<token_attributes::TokenAttributesFields>,
}

#[derive(Deserialize)]
struct EnvVar {
    name: String,
    #[serde(default)]
    value: String,
}

/// Why the configuration of credential providers can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialProvidersError {
    /// A file is invalid: the error, with line and field if known, and without the path.
    #[error("{0}")]
    Invalid(String),
    /// Two providers have the same name.
    #[error("two providers have the name {0:?}")]
    Duplicate(String),
    /// No file has a provider.
    #[error("must have at least one provider")]
    Empty,
}

/// Reads one file. `tokens` is the feature gate `KubeletServiceAccountTokenForCredentialProviders`.
///
/// # Errors
/// See [`CredentialProvidersError::Invalid`].
pub fn parse_credential_providers(
    text: &str,
    tokens: bool,
) -> Result<Vec<CredentialProvider>, CredentialProvidersError> {
    parse(text, tokens).map_err(CredentialProvidersError::Invalid)
}

fn parse(text: &str, tokens: bool) -> Result<Vec<CredentialProvider>, String> {
    let mut documents = documents(text).map_err(|error| error.to_string())?;
    if documents.len() != 1 {
        return Err("must be one document with kind: CredentialProviderConfig".to_owned());
    }
    let file: ConfigFile = documents
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
        validate(provider, tokens).map_err(at)
    });
    providers.collect()
}

fn validate(
    written: ProviderFields,
    tokens: bool,
) -> Result<CredentialProvider, (&'static str, String)> {
    let name = written.name;
    if name.is_empty() || [".", ".."].contains(&&*name) || name.contains(['/', ' ']) {
        let problem = format!("must be the name of a program, without / and spaces, is {name:?}");
        return Err(("name", problem));
    }
    if !PROVIDER_VERSIONS.contains(&&*written.api_version) {
        let known = PROVIDER_VERSIONS.join(", ");
        let problem = format!("must be one of {known}, is {:?}", written.api_version);
        return Err(("apiVersion", problem));
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
    let token_attributes = match written.token_attributes {
        Some(attributes) => Some(token_attributes::validate(
            attributes,
            &written.api_version,
            tokens,
        )?),
        None => None,
    };
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
        token_attributes,
    })
}

/// The providers of all files, in the order of the files.
///
/// # Errors
/// There is no provider, or two have the same name.
pub fn merge_credential_providers(
    files: Vec<Vec<CredentialProvider>>,
) -> Result<Vec<CredentialProvider>, CredentialProvidersError> {
    let providers: Vec<CredentialProvider> = files.into_iter().flatten().collect();
    let mut names = BTreeSet::new();
    if let Some(again) = providers.iter().find(|one| !names.insert(&one.name)) {
        return Err(CredentialProvidersError::Duplicate(again.name.clone()));
    }
    match providers.is_empty() {
        true => Err(CredentialProvidersError::Empty),
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
    fn configuration_of_a_cloud_is_parsed() {
        let text = provider(", args: [get], env: [{name: A, value: b}]");
        let found = parse_credential_providers(&text, true).unwrap();
        assert_eq!(
            found,
            [CredentialProvider {
                name: "ecr".to_owned(),
                match_images: vec!["*.example.com".to_owned()],
                default_cache_duration: Duration::from_secs(12 * 3600),
                api_version: "credentialprovider.kubelet.k8s.io/v1".to_owned(),
                args: vec!["get".to_owned()],
                env: vec![("A".to_owned(), "b".to_owned())],
                token_attributes: None,
            }]
        );
        let twice = merge_credential_providers(vec![found.clone(), found.clone()]);
        assert_eq!(
            twice.unwrap_err().to_string(),
            "two providers have the name \"ecr\""
        );
        assert_eq!(
            merge_credential_providers(vec![found.clone()]).unwrap(),
            found
        );
    }

    #[test]
    fn errors_name_their_field() {
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
            (provider(", tokens: x"), "tokens"),
            (
                provider("").replace("CredentialProviderConfig", "Config"),
                "must have kind: CredentialProviderConfig",
            ),
            (String::new(), "must be one document"),
        ] {
            let error = parse_credential_providers(&text, true)
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(
            merge_credential_providers(vec![Vec::new()])
                .unwrap_err()
                .to_string()
                .contains("at least one provider")
        );
    }

    const TOKENS: &str = "serviceAccountTokenAudience: registry, cacheType: Token, requireServiceAccount: true, \
                          requiredServiceAccountAnnotationKeys: [Example.com/role], \
                          optionalServiceAccountAnnotationKeys: [region]";

    fn with_tokens(attributes: &str) -> String {
        provider(&format!(", tokenAttributes: {{{attributes}}}"))
    }

    #[test]
    fn a_provider_may_receive_service_account_tokens() {
        let read = |text: &str| {
            let mut found = parse_credential_providers(text, true).unwrap();
            found.remove(0).token_attributes
        };
        let mut expected = TokenAttributes {
            audience: "registry".to_owned(),
            cache_type: TokenCacheType::Token,
            require_service_account: true,
            required_annotations: vec!["Example.com/role".to_owned()],
            optional_annotations: vec!["region".to_owned()],
        };
        assert_eq!(read(&with_tokens(TOKENS)), Some(expected.clone()));
        let least = "serviceAccountTokenAudience: r, cacheType: ServiceAccount, requireServiceAccount: false";
        expected = TokenAttributes {
            audience: "r".to_owned(),
            cache_type: TokenCacheType::ServiceAccount,
            require_service_account: false,
            required_annotations: Vec::new(),
            optional_annotations: Vec::new(),
        };
        assert_eq!(read(&with_tokens(least)), Some(expected));
        assert_eq!(read(&provider(", tokenAttributes: null")), None);
    }

    #[test]
    fn errors_in_token_attributes_name_their_field() {
        for (from, to, part) in [
            (
                "serviceAccountTokenAudience: registry, ",
                "",
                ".serviceAccountTokenAudience: must be the audience",
            ),
            (
                "registry",
                "''",
                ".serviceAccountTokenAudience: must be the audience",
            ),
            (
                "cacheType: Token, ",
                "",
                ".cacheType: must be ServiceAccount or Token, is \"\"",
            ),
            (
                "Token,",
                "Pod,",
                ".cacheType: must be ServiceAccount or Token, is \"Pod\"",
            ),
            (
                "requireServiceAccount: true, ",
                "",
                ".requireServiceAccount: must be true or false",
            ),
            (
                "true",
                "false",
                ".requiredServiceAccountAnnotationKeys: must be empty unless requireServiceAccount is true",
            ),
            (
                "Example.com/role",
                "-role",
                ".requiredServiceAccountAnnotationKeys: \"-role\" cannot be an annotation",
            ),
            (
                "[region]",
                "[a/b/c]",
                ".optionalServiceAccountAnnotationKeys: \"a/b/c\" cannot be an annotation",
            ),
            (
                "[region]",
                "[region, zone, region]",
                ".optionalServiceAccountAnnotationKeys: \"region\" is listed twice",
            ),
            (
                "[region]",
                "[Example.com/role]",
                ": \"Example.com/role\" is in requiredServiceAccountAnnotationKeys and in",
            ),
            ("cacheType", "cacheKind", "cacheKind"),
        ] {
            let text = with_tokens(&TOKENS.replacen(from, to, 1));
            let error = parse_credential_providers(&text, true)
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{error}");
            let is_ours = part.starts_with(['.', ':']);
            assert!(
                !is_ours || error.starts_with("providers[0].tokenAttributes"),
                "{error}"
            );
        }
        let old = with_tokens(TOKENS).replace("k8s.io/v1,", "k8s.io/v1beta1,");
        let error = parse_credential_providers(&old, true)
            .unwrap_err()
            .to_string();
        let expected = "providers[0].tokenAttributes: needs apiVersion: credentialprovider.kubelet.k8s.io/v1, \
                        is credentialprovider.kubelet.k8s.io/v1beta1";
        assert_eq!(error, expected);
        let error = parse_credential_providers(&with_tokens(TOKENS), false)
            .unwrap_err()
            .to_string();
        let expected = "providers[0].tokenAttributes: cannot be used while the feature gate \
                        KubeletServiceAccountTokenForCredentialProviders is off";
        assert_eq!(error, expected);
    }
}
