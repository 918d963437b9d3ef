#!/bin/busybox sh
# Takes commands from the host through a serial line and answers with their results.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
# A guest whose host forgot it goes away by itself.
(sleep 600; poweroff -f) &
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo ready >&3
while read -r number command <&3; do
    echo "$command" | base64 -d > /run/command
    sh /run/command > /run/output 2>&1 < /dev/null 3>&-
    status=$?
    echo "$number $status $(wc -c < /run/output)" >&3
    cat /run/output >&3
done
