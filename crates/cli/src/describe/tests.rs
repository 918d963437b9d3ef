//! `rubelet describe`, word for word.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pod::describe;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

fn full_pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-n1", "namespace": "default",
            "labels": { "tier": "front", "app": "web" },
            "annotations": {
                "kubernetes.io/config.source": "file",
                "note": "two\nlines",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {
            "nodeName": "n1",
            "priority": 2_000_001_000,
            "priorityClassName": "system-node-critical",
            "initContainers": [{ "name": "setup", "image": "busybox", "command": ["sh", "-c", "echo\nhi"] }],
            "containers": [{
                "name": "web", "image": "nginx:1.27", "args": ["-g", "daemon off;"],
                "ports": [
                    { "containerPort": 80, "name": "http", "protocol": "TCP", "hostPort": 8080 },
                    { "containerPort": 53, "protocol": "UDP" },
                ],
                "resources": {
                    "limits": { "memory": "64Mi", "cpu": "500m" },
                    "requests": { "cpu": "100m" },
                },
                "livenessProbe": { "httpGet": { "path": "/ok", "port": 80 }, "periodSeconds": 5 },
                "env": [
                    { "name": "PLAIN", "value": "x" },
                    { "name": "POD", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } },
                    { "name": "APP", "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['app']" } } },
                    { "name": "LIMIT", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu", "divisor": "1m" } } },
                ],
                "volumeMounts": [
                    { "name": "data", "mountPath": "/data" },
                    { "name": "etc", "mountPath": "/conf", "readOnly": true, "subPath": "web" },
                ],
            }],
            "volumes": [
                { "name": "data", "emptyDir": { "medium": "Memory", "sizeLimit": "1Gi" } },
                { "name": "etc", "hostPath": { "path": "/etc/web", "type": "Directory" } },
            ],
            "tolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "hostIP": "192.168.1.2",
            "podIP": "10.0.0.7", "podIPs": [{ "ip": "10.0.0.7" }, { "ip": "fd00::7" }],
            "startTime": "2026-03-01T09:00:00Z",
            "conditions": [
                { "type": "Initialized", "status": "True" },
                { "type": "Ready", "status": "False", "reason": "ContainersNotReady",
                  "message": "containers with unready status: [web]" },
            ],
            "initContainerStatuses": [{
                "name": "setup", "containerID": "containerd://11", "imageID": "sha256:aa",
                "ready": true, "restartCount": 0,
                "state": { "terminated": { "exitCode": 0, "reason": "Completed",
                    "startedAt": "2026-03-01T09:00:01Z", "finishedAt": "2026-03-01T09:00:02Z" } },
            }],
            "containerStatuses": [{
                "name": "web", "containerID": "containerd://22", "imageID": "sha256:bb",
                "ready": false, "restartCount": 3,
                "state": { "waiting": { "reason": "CrashLoopBackOff",
                    "message": "back-off 40s restarting failed container=web" } },
                "lastState": { "terminated": { "exitCode": 137, "signal": 9, "reason": "OOMKilled",
                    "startedAt": "2026-03-01T11:50:00Z", "finishedAt": "2026-03-01T11:59:00Z" } },
            }],
        },
    })
}

const FULL: &str = r#"Name:                 web-n1
Namespace:            default
Priority:             2000001000
Priority Class Name:  system-node-critical
Node:                 n1/192.168.1.2
Start Time:           Sun, 01 Mar 2026 09:00:00 +0000
Labels:               app=web
                      tier=front
Annotations:          kubernetes.io/config.source: file
                      note:
                        two
                        lines
Status:               Running
IP:                   10.0.0.7
IPs:
  IP:  10.0.0.7
  IP:  fd00::7
Init Containers:
  setup:
    Container ID:  containerd://11
    Image:         busybox
    Image ID:      sha256:aa
    Port:          <none>
    Host Port:     <none>
    Command:
      sh
      -c
      echo
      hi
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
      Started:      Sun, 01 Mar 2026 09:00:01 +0000
      Finished:     Sun, 01 Mar 2026 09:00:02 +0000
    Ready:          True
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Containers:
  web:
    Container ID:  containerd://22
    Image:         nginx:1.27
    Image ID:      sha256:bb
    Ports:         80/TCP (http), 53/UDP
    Host Ports:    8080/TCP (http), 0/UDP
    Args:
      -g
      daemon off;
    State:          Waiting
      Reason:       CrashLoopBackOff
      Message:      back-off 40s restarting failed container=web
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Signal:       9
      Started:      Sun, 01 Mar 2026 11:50:00 +0000
      Finished:     Sun, 01 Mar 2026 11:59:00 +0000
    Ready:          False
    Restart Count:  3
    Limits:
      cpu:     500m
      memory:  64Mi
    Requests:
      cpu:     100m
    Liveness:  http-get http://:80/ok delay=0s timeout=1s period=5s #success=1 #failure=3
    Environment:
      PLAIN:  x
      POD:    web-n1 (v1:metadata.name)
      APP:    web (v1:metadata.labels['app'])
      LIMIT:  <set from limits.cpu, divisor 1m>
    Mounts:
      /conf from etc (ro,path="web")
      /data from data (rw)
Conditions:
  Type         Status  Reason
  Initialized  True
  Ready        False   ContainersNotReady: containers with unready status: [web]
Volumes:
  data:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  1Gi
  etc:
    Type:          HostPath (bare host directory volume)
    Path:          /etc/web
    HostPathType:  Directory
QoS Class:         Burstable
Node-Selectors:    <none>
Tolerations:       :NoExecute op=Exists
Events:
  Type     Reason   Age                From     Message
  ----     ------   ----               ----     -------
  Normal   Pulled   3h                 kubelet  image is there
  Warning  BackOff  30s (x7 over 60m)  kubelet  spec.containers{web}: back-off restarting
"#;

#[test]
fn a_pod_with_everything_reads_like_kubectls() {
    let events = [
        json!({ "type": "Warning", "reason": "BackOff", "message": "back-off restarting\n",
                "count": 7, "reportingComponent": "kubelet",
                "involvedObject": { "fieldPath": "spec.containers{web}" },
                "firstTimestamp": "2026-03-01T11:00:00Z",
                "lastTimestamp": "2026-03-01T11:59:30Z" }),
        json!({ "type": "Normal", "reason": "Pulled", "message": "image is there",
                "source": { "component": "kubelet" },
                "firstTimestamp": "2026-03-01T09:00:00Z" }),
    ];
    let text = describe(&full_pod(), &events, now());
    for (number, (line, expected)) in text.lines().zip(FULL.lines()).enumerate() {
        assert_eq!(line, expected, "line {}", number + 1);
    }
    assert_eq!(text, FULL);
}

#[test]
fn a_pod_with_nothing_is_described_too() {
    let pod = json!({
        "metadata": { "name": "new", "namespace": "default",
                      "deletionTimestamp": "2026-03-01T11:59:50Z",
                      "deletionGracePeriodSeconds": 30 },
        "spec": { "containers": [{ "name": "a", "image": "x" }] },
        "status": { "phase": "Pending" },
    });
    let text = describe(&pod, &[], now());
    assert_eq!(
        text,
        "\
Name:                      new
Namespace:                 default
Node:                      <none>
Labels:                    <none>
Annotations:               <none>
Status:                    Terminating (lasts 10s)
Termination Grace Period:  30s
IP:
IPs:                       <none>
Containers:
  a:
    Image:        x
    Port:         <none>
    Host Port:    <none>
    Environment:  <none>
    Mounts:       <none>
Volumes:          <none>
QoS Class:
Node-Selectors:   <none>
Tolerations:      <none>
Events:           <none>
"
    );
}

#[test]
fn text_from_elsewhere_can_not_steer_the_terminal() {
    let mut pod = full_pod();
    pod["status"]["message"] = "\x1b]0;owned\x07".into();
    let text = describe(&pod, &[], now());
    assert!(text.contains("^[]0;owned^G"));
    assert!(!text.contains('\x1b'));
}

/// A pod with a container of each kind, and with what only some of them have.
fn pod_with_all_kinds_of_containers() -> Value {
    json!({
        "metadata": {
            "name": "web-n1", "namespace": "default",
            "annotations": { "rubelet.dev/next-try": "{\"web\":\"2026-03-01T12:00:38Z\"}" },
        },
        "spec": {
            "initContainers": [{
                "name": "proxy", "image": "proxy:1", "restartPolicy": "Always",
                "startupProbe": { "exec": { "command": ["cat", "/up"] }, "failureThreshold": 30 },
            }],
            "containers": [{
                "name": "web", "image": "web:1",
                "readinessProbe": { "grpc": { "port": 9000, "service": "web" } },
                "lifecycle": {
                    "postStart": { "httpGet": { "port": "http", "path": "/warm" } },
                    "preStop": { "sleep": { "seconds": 5 } },
                },
            }],
            "ephemeralContainers": [{
                "name": "look", "image": "busybox", "command": ["ps"],
                "targetContainerName": "web",
            }],
            "readinessGates": [{ "conditionType": "lb/up" }, { "conditionType": "x" }],
        },
        "status": {
            "phase": "Running", "qosClass": "BestEffort",
            "conditions": [{ "type": "lb/up", "status": "True" }],
            "containerStatuses": [{
                "name": "web", "containerID": "containerd://2", "imageID": "sha256:b",
                "ready": false, "restartCount": 3,
                "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            }],
            "ephemeralContainerStatuses": [{
                "name": "look", "containerID": "containerd://3", "imageID": "sha256:c",
                "ready": false, "restartCount": 0,
                "state": { "running": { "startedAt": "2026-03-01T11:00:00Z" } },
            }],
        },
    })
}

#[test]
fn what_tells_kinds_of_containers_apart_is_described() {
    let pod = pod_with_all_kinds_of_containers();
    assert_eq!(
        describe(&pod, &[], now()),
        "\
Name:         web-n1
Namespace:    default
Node:         <none>
Labels:       <none>
Annotations:  <none>
Status:       Running
IP:
IPs:          <none>
Init Containers:
  proxy:
    Image:           proxy:1
    Port:            <none>
    Host Port:       <none>
    Restart Policy:  Always
    Startup:         exec [cat /up] delay=0s timeout=1s period=10s #success=1 #failure=30
    Environment:     <none>
    Mounts:          <none>
Containers:
  web:
    Container ID:   containerd://2
    Image:          web:1
    Image ID:       sha256:b
    Port:           <none>
    Host Port:      <none>
    State:          Waiting
      Reason:       CrashLoopBackOff
      Next Try:     Sun, 01 Mar 2026 12:00:38 +0000
    Ready:          False
    Restart Count:  3
    Readiness:      grpc <pod>:9000 web delay=0s timeout=1s period=10s #success=1 #failure=3
    Post Start:     http-get http://:http/warm
    Pre Stop:       sleep 5s
    Environment:    <none>
    Mounts:         <none>
Ephemeral Containers:
  look:
    Container ID:  containerd://3
    Image:         busybox
    Image ID:      sha256:c
    Port:          <none>
    Host Port:     <none>
    Target:        web
    Command:
      ps
    State:          Running
      Started:      Sun, 01 Mar 2026 11:00:00 +0000
    Ready:          False
    Restart Count:  0
    Environment:    <none>
    Mounts:         <none>
Readiness Gates:
  Type   Status
  lb/up  True
  x      <none>
Conditions:
  Type           Status
  lb/up          True
Volumes:         <none>
QoS Class:       BestEffort
Node-Selectors:  <none>
Tolerations:     <none>
Events:          <none>
"
    );
}
