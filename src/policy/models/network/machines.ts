import type { Model } from "../model.ts";
import { manages, named, runsElsewhere } from "./parts.ts";

/** Images and containers without an engine of their own, or the parts below one. */
const IMAGES = `buildah skopeo kaniko img buildctl buildkitd crane oras cosign notation dive earthly pack
  crictl ctr containerd dockerd colima lima limactl finch apptainer singularity enroot charliecloud toolbox distrobox
  flatpak-spawn lxc lxc-attach lxc-create lxc-start lxc-stop lxc-execute lxd incus multipass orb rancher runc crun youki
  kata-runtime umoci systemd-nspawn machinectl portablectl act dagger devcontainer`;

/** Whole machines. */
const MACHINES = `virsh virt-install virt-manager virt-clone virt-viewer qemu-img qemu-nbd qemu-io vagrant VBoxManage vboxmanage
  VBoxHeadless vmrun prlctl tart firecracker cloud-hypervisor xl xe qm pct cloud-init`;

const QEMU = `qemu-system-x86_64 qemu-system-i386 qemu-system-aarch64 qemu-system-arm qemu-system-riscv64 qemu-system-ppc64
  qemu-system-s390x qemu-kvm kvm qemu-x86_64 qemu-aarch64 qemu-arm qemu-i386 qemu-riscv64 qemu-x86_64-static
  qemu-aarch64-static qemu-arm-static`;

/** Programs that wait for others to connect. */
const SERVERS = `lighttpd traefik envoy varnishd squid tinyproxy 
  valkey-server mongod mongos postgres pg_ctl pg_ctlcluster initdb mysqld mysqld_safe mariadbd memcached rabbitmq-server
  rabbitmqctl kafka-server-start zookeeper-server-start elasticsearch opensearch meilisearch typesense etcd minio
  prometheus grafana-server influxd clickhouse-server cockroach neo4j named dnsmasq unbound coredns sshd dropbear
  vsftpd smbd nmbd nfsd rpcbind slapd postfix exim4 dovecot squid3 mosquitto nats-server verdaccio
  json-server browser-sync supervisord supervisorctl circusd`;

export const MACHINES_AND_SERVERS: Readonly<Record<string, Model>> = {
  ...named(IMAGES, runsElsewhere()),
  ...named(MACHINES, manages()),
  ...named(QEMU, runsElsewhere("--version -version --help")),
  ...named(
    "nginx apache2 apache2ctl apachectl httpd haproxy php-fpm",
    runsElsewhere("--version -v -V --help -h"),
  ),
  "redis-server": runsElsewhere("--version -v --help -h"),
  caddy: runsElsewhere("--version version --help help"),
  ...named(SERVERS, runsElsewhere()),
};
