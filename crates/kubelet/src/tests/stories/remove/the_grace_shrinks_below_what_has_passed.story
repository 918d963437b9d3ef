The shortened grace period is over already: the container is killed at once

pod web
  terminationGracePeriodSeconds: 600
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ignores SIGTERM
at 20s  manifest is removed
at 60s  operator asks for a grace of 5s
until 80s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 why   stops container web: the pod terminates
00:20.0 state Running, ends within 600 s: web Running
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 600 s
00:20.0 proc  web#0 gets SIGTERM
01:00.0 then  operator asks for a grace of 5s
01:05.0 call  StopContainer web#0, grace 0 s
01:05.0 proc  web#0 exits 137 (Error)
01:05.0 call  StopContainer web#0 was given up
01:05.0 call  StopPodSandbox 0
01:05.0 state Running, ends within 600 s: web Error(137)
01:05.0 cond  PodReadyToStartContainers False
01:05.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
01:05.0 call  RemoveContainer web#0
01:05.0 call  RemovePodSandbox 0
01:05.0 gone  nothing is left of the pod
