import type { Model } from "../model.ts";
import { named, remote, runsElsewhere } from "./parts.ts";

/** Files of settings, read and perhaps set in order; no provider runs. */
const FORMATS: Model = {
  options: "-check!read -diff -list=? -no-color -recursive -write=?",
  singleDash: true,
  operands: "write*|.",
  tells: "-help --help -h",
};

const DOES = `plan apply destroy init import refresh output show state providers get graph console taint untaint workspace
  force-unlock login logout test metadata modules query env push`;

const TERRAFORM: Model = {
  options: "-chdir=in",
  singleDash: true,
  tells: "version -version --version -v help -help --help -h",
  commands: {
    version: { options: "-json", operands: "", singleDash: true },
    fmt: FORMATS,
    validate: {
      options: "-json -no-color -no-tests -compact-warnings",
      singleDash: true,
      operands: "",
      tells: "-help --help -h",
      fixed: ["check"],
    },
    ...named(DOES, runsElsewhere("-help --help -h")),
  },
};

const TOLD = "--version -v version --help -h help";

const PLANS = `terragrunt pulumi packer cdk cdktf cdk8s sls serverless sam chalice zappa ansible ansible-playbook ansible-galaxy
  ansible-vault ansible-pull ansible-console ansible-inventory ansible-doc ansible-config ansible-test ansible-builder
  ansible-navigator molecule salt salt-call salt-ssh salt-run puppet puppet-agent chef-client chef-solo knife cap
  capistrano fab pyinfra bolt cfn copilot ecs-cli eb crossplane atlantis infracost spacectl
  scalr driftctl terraformer nixops colmena deploy-rs kamal dokku`;

export const PROVISIONING: Readonly<Record<string, Model>> = {
  terraform: TERRAFORM,
  tofu: TERRAFORM,
  ...named(PLANS, runsElsewhere(TOLD)),
  ...named("vault doppler infisical chamber teller envchain", remote("--version -v version --help -h help")),
};
