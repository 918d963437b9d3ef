The runtime reports after the exit that it was an OOM kill: the status is corrected

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}
  - {name: other, image: "app:1"}

at 10s  container job exits 137
at 11s  runtime tells OOMKilled of job
until 20s
---
00:00.0 state Pending: job ContainerCreating, other ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container job: it has not run yet
00:00.0 why   starts container other: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer job#0
00:00.0 call  StartContainer job#0
00:00.0 call  CreateContainer other#0
00:00.0 call  StartContainer other#0
00:00.0 why   everything runs as specified
00:00.0 state Running: job Running, other Running
00:00.0 cond  Ready True
00:10.0 then  container job exits 137
00:10.0 proc  job#0 exits 137 (Error)
00:10.0 state Running: job Error(137), other Running
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [job]
00:11.0 then  runtime tells OOMKilled of job
00:12.0 state Running: job OOMKilled(137), other Running
