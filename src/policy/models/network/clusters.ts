import type { Found, Model, Use } from "../model.ts";
import { copied, named as podPart } from "./copies.ts";
import { given, manages, named, remote, runsElsewhere, telling, valuesOf, networkTo } from "./parts.ts";

/** Settings of a cluster name helper programs that log in. */
const GLOBALS = `-n: -s:host -v: -A --namespace= --context= --cluster= --user= --token= --server=host --as= --as-group= --as-uid=
  --request-timeout= --cache-dir=target --certificate-authority=read --client-certificate=read --client-key=read
  --insecure-skip-tls-verify=? --match-server-version=? --tls-server-name= --profile= --profile-output=write
  --warnings-as-errors=? --log-flush-frequency= --vmodule= --disable-compression=? --kubeconfig=loads`;

/** The client tells its own version; without `--client` it asks the server as well. */
const VERSION: Model = {
  options: "--client=? --short=? -o: --output= --output-version=",
  operands: "",
  also: (use) => {
    const value = use.options.find(({ name }) => name === "--client")?.value?.value;
    return given(use, "--client") && (value ?? "true") === "true" ? [] : [{ kind: "network", hosts: [] }];
  },
};

/** What is sent to the cluster: files, folders or addresses. */
const SENDS: Model = {
  options: `-f: -k:loads -R -l: -o: --filename= --kustomize=loads --recursive=? --dry-run=? --server-side=? --force=? --force-conflicts=?
    --prune=? --wait=? --timeout= --validate=? --field-manager= --grace-period= --cascade=? --all=? --output= --selector=
    --namespace= -n: -A --all-namespaces=? --context= --kubeconfig=loads --record=? --overwrite=? --ignore-not-found=? --now=?
    --save-config=? --edit=? --template= --show-managed-fields=? --prune-allowlist= --subresource= --type= -p: --patch=
    --patch-file=read --local=? --raw= --field-selector= --image= --replicas= --from-file=read --from-env-file=read
    --from-literal= --cert=read --key=read`,
  operands: "data*",
  tells: "--help -h",
  fixed: ["network"],
  also: sent,
};

function sent(use: Use): readonly Found[] {
  return valuesOf(use, "-f", "--filename")
    .filter(({ value }) => value !== "-")
    .map((file) =>
      file.value.includes("://") ? networkTo(file) : { kind: "read", path: use.place(file), span: file.span },
    );
}

const COPIES: Model = {
  options: "-c: --container= --no-preserve=? --retries= -n: --namespace= --context= --kubeconfig=loads",
  operands: "data*",
  tells: "--help -h",
  fixed: ["network"],
  also: (use) => copied(use, podPart),
};

const ASKS = `get describe explain logs top events api-resources api-versions cluster-info diff auth wait rollout scale autoscale
  expose run exec attach port-forward proxy debug cordon uncordon drain taint label annotate certificate config
  plugin options kustomize`;

const KUBECTL: Model = {
  options: GLOBALS,
  tells: "--help -h help",
  commands: {
    version: VERSION,
    ...named(ASKS, remote("--help -h")),
    completion: manages("--help -h"),
    ...named("apply create replace delete patch edit set", SENDS),
    cp: COPIES,
  },
};

const HELM_VALUES = "-f:read --values=read --set= --set-string= --set-json= -n: --namespace= --kube-version=";

const HELM: Model = {
  options: `-n: --namespace= --debug --kube-context= --kube-apiserver=host --kubeconfig=loads --registry-config=read
    --repository-cache=target --repository-config=loads --burst-limit= --qps=`,
  tells: "--help -h help",
  commands: {
    version: telling("--short --client -c --template="),
    completion: manages("--help -h"),
    lint: {
      options: `${HELM_VALUES} --strict --quiet --with-subcharts --skip-schema-validation`,
      operands: "read*|.",
      tells: "--help -h",
      also: (use) =>
        valuesOf(use, "-f", "--values")
          .filter(({ value }) => value.includes("://"))
          .map(networkTo),
    },
    ...named(
      `template list ls install upgrade uninstall delete rollback status history get show inspect search repo pull fetch push
      dependency dep package create env plugin registry test verify diff secrets`,
      runsElsewhere("--help -h"),
    ),
  },
};

const OTHERS = `k0s kubeadm kubelet kubectx kubens kubeseal okteto garden telepresence
  microk8s minishift crc oc rosa kops kubespray istioctl linkerd cilium hubble flux argocd argo tkn velero calicoctl
  kn kubescape popeye helmfile helmsman krew kubectl-krew clusterctl rke rke2 etcdctl
  waypoint serf dapr knative kapp ytt vcluster werf draft acorn`;

export const CLUSTERS: Readonly<Record<string, Model>> = {
  kubectl: KUBECTL,
  helm: HELM,
  ...named(
    "minikube kind k9s k3s k3d kustomize skaffold stern tilt devspace kompose eksctl talosctl consul nomad boundary",
    runsElsewhere("--version version --help help"),
  ),
  ...named(OTHERS, runsElsewhere()),
};
