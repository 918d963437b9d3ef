#!/bin/busybox sh
# Takes commands from the host through a serial line and answers with their results.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
# A guest whose host forgot it goes away by itself.
(sleep 3600; poweroff -f) &
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
# The line of what the host only reads stays open: nothing is lost between two programs that write to it.
exec 4> /dev/ttyS2
stty -F /dev/ttyS2 raw -echo
echo ready >&3
while read -r number command <&3; do
    echo "$command" | base64 -d > /run/command
    sh /run/command > /run/output 2>&1 < /dev/null 3>&- 4>&-
    status=$?
    echo "$number $status $(wc -c < /run/output)" >&3
    cat /run/output >&3
done
