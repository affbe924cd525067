# fresh-root.sh: a minimal Debian in a folder, to be sourced by scripts that try something in one. They run as root.

# Makes the folder's content, with packages beyond the minimum, from where this machine's own apt gets its packages.
make_root() { # folder, packages with commas between them
	. /etc/os-release
	apt-config dump | grep -iE '^Acquire::(http|https)::Proxy' >"$1.apt"
	# Whatever it mounts is gone with it, so that whoever deletes the folder deletes nothing else.
	# shellcheck disable=SC2046  # one argument for each file
	unshare --mount --propagation private mmdebstrap --quiet --variant=minbase --include="$2" --aptopt="$1.apt" "$VERSION_CODENAME" "$1" \
		$(find /etc/apt/sources.list /etc/apt/sources.list.d -type f \( -name '*.list' -o -name '*.sources' \) -size +0 2>/dev/null)
}

# What a machine has besides files: processes, devices, shared memory. Nothing of the host can be written, and its devices
# are left out. To be called in mount and process namespaces of its own; stays in the folder.
furnish_root() { # folder
	mount --bind "$1" "$1" &&
		cd "$1" &&
		mount -t proc proc proc &&
		mount --bind proc/sys proc/sys &&
		mount -o remount,bind,ro proc/sys &&
		mount -t sysfs -o ro sysfs sys &&
		mount -t tmpfs -o mode=755 tmpfs run &&
		mount -t tmpfs -o mode=755 tmpfs dev || return 1
	for device in null zero full random urandom tty; do
		touch dev/$device && mount --bind /dev/$device dev/$device || return 1
	done
	mkdir dev/shm dev/pts &&
		mount -t tmpfs tmpfs dev/shm &&
		mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts &&
		ln -s pts/ptmx dev/ptmx &&
		ln -s /proc/self/fd dev/fd &&
		ln -s /proc/self/fd/0 dev/stdin &&
		ln -s /proc/self/fd/1 dev/stdout &&
		ln -s /proc/self/fd/2 dev/stderr
}

# Runs a command in the root whose process 1 this is.
inside_root() { # process, command…
	target=$1
	shift
	nsenter --target "$target" --all --root --wd env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}
