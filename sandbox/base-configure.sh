#!/bin/sh
# Runs once, as root, in a network-less container of freshly unpacked packages: makes a system of them.
# The packages lie in /.stage/base. What is left is a base image of the distribution.
set -eu
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C.UTF-8 HOME=/root
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

# No service is ever started in an image.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

mkdir -p /etc/dpkg/dpkg.cfg.d
cat >/etc/dpkg/dpkg.cfg.d/small-image <<'DPKG'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/lintian/*
DPKG
dpkg --force-unsafe-io --force-depends --unpack /.stage/base/*.deb
dpkg --force-unsafe-io --configure -a
broken=$(dpkg --audit)
[ -z "$broken" ] || {
  printf '%s\n' "$broken"
  exit 1
}

cat >/etc/apt/apt.conf.d/docker-base <<'APT'
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT::Install-Recommends "false";
APT
# The one folder that unpacking as another user leaves wrong and dpkg does not mend.
chown 0:50 /var/local
chmod 2775 /var/local
rm -rf /.stage /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/dpkg.log /var/log/apt/* \
  /var/log/alternatives.log /var/cache/ldconfig/aux-cache
