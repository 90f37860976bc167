import type { Model } from "../model.ts";
import { named, remote, runsElsewhere } from "./parts.ts";

const PLANS = `terragrunt cdk cdktf cdk8s sls serverless sam chalice zappa ansible ansible-galaxy
  ansible-vault ansible-pull ansible-console ansible-inventory ansible-doc ansible-config ansible-test ansible-builder
  ansible-navigator molecule salt salt-call salt-ssh salt-run puppet puppet-agent chef-client chef-solo knife cap
  capistrano pyinfra bolt cfn copilot ecs-cli eb crossplane atlantis infracost spacectl
  scalr driftctl terraformer nixops colmena deploy-rs kamal dokku`;

export const PROVISIONING: Readonly<Record<string, Model>> = {
  ...named(PLANS, runsElsewhere()),
  ...named("pulumi packer", runsElsewhere("--version version --help")),
  vault: remote("--version -v version --help"),
  ...named("doppler infisical chamber teller envchain", remote()),
};
