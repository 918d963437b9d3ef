#!/bin/busybox sh
# The first process of the guest. It stands in the initial root directory, which no process can leave
# by pivot_root, so it mounts the same file system there once more.
if [ ! -e /moved ]; then
    /bin/busybox mkdir -p /new
    if [ -n "$host_root" ]; then
        # The host's root directory, which stays as it is, and what the test adds.
        export PATH=/bin
        /bin/busybox --install -s /bin
        mkdir -p /host /upper
        mount -t proc proc /proc
        modprobe -a $(cat /modules)
        mount -t virtiofs -o ro host /host
        mount -t tmpfs -o size=90% upper /upper
        mkdir /upper/files /upper/work
        mount -t overlay -o lowerdir=/host,upperdir=/upper/files,workdir=/upper/work root /new
        # It would be the host's, with the host's programs at /proc/self/exe.
        mount --move /proc /new/proc
        cp /init /line.sh /modules /new
        cd /added || exit
        find . -type f | while read -r file; do
            mkdir -p "/new/${file%/*}"
            cp -p "$file" "/new/$file"
        done
    else
        /bin/busybox mount --bind / /new
    fi
    cd /new || exit
    : > moved
    /bin/busybox mount --move . /
    exec /bin/busybox chroot . /init
fi
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
/bin/busybox --install -s /bin 2>/dev/null
mkdir -p /proc /sys /dev /run /tmp /root /var/lib /var/tmp /etc
if [ -z "$host_root" ]; then
    mount -t proc proc /proc
    mount -o remount,size=90% /
fi
mount -t sysfs sysfs /sys
mount -t securityfs securityfs /sys/kernel/security
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# As systemd does.
mount --make-rshared /
ifconfig lo 127.0.0.1 up
hostname guest
# On the host's root directory they are loaded already.
[ -n "$host_root" ] || [ ! -s /modules ] || modprobe -a $(cat /modules)
# A disk: before Linux 6.3 the IDs of a tmpfs can't be mapped.
disk=
if [ -b /dev/vda ]; then
    # The host's, which outlives the guest. Nothing is written to it but what is flushed.
    echo 0 > /proc/sys/vm/dirty_writeback_centisecs
    disk=/dev/vda
    options=commit=3600${disk_option:+,$disk_option}
elif grep -q '^loop$' /modules; then
    truncate -s 2G /disk
    mke2fs -F /disk > /dev/null
    losetup /dev/loop0 /disk
    disk=/dev/loop0
    options=rw
fi
if [ -n "$disk" ]; then
    mkdir -p /mnt /var/log
    mount -t ext4 -o "$options" "$disk" /mnt
    # The host has the list of its packages in /var/lib.
    [ -n "$host_root" ] || state=var/lib
    for directory in tmp $state var/log; do
        mkdir -p "/mnt/$directory"
        mount --bind "/mnt/$directory" "/$directory"
    done
fi
if [ -e /etc/systemd/system/line.service ]; then
    # The same directory on a machine whose root directory has no /lib of its own.
    mkdir -p /usr/lib
    [ -e /usr/lib/systemd ] || ln -s ../../lib/systemd /usr/lib/systemd
    exec /lib/systemd/systemd --log-target=console
fi
exec sh /line.sh
