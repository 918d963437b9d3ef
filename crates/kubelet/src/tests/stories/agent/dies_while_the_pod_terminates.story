The agent dies during a grace period: the next agent stops what still runs

pod web
  terminationGracePeriodSeconds: 20
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ignores SIGTERM
at 10s  manifest is removed
at 15s  agent dies
at 18s  agent starts
until 60s
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
00:10.0 then  manifest is removed
00:10.0 why   no source defines the pod any more
00:10.0 why   stops container web: the pod terminates
00:10.0 state Running, ends within 20 s: web Running
00:10.0 event Normal Killing web: Stopping container web
00:10.0 call  StopContainer web#0, grace 20 s
00:10.0 proc  web#0 gets SIGTERM
00:15.0 then  agent dies
00:15.0 call  StopContainer web#0 was given up
00:18.0 then  agent starts
00:18.0 why   no source defines the pod any more
00:18.0 why   stops container web: the pod terminates
00:18.0 event Normal Killing web: Stopping container web
00:18.0 call  StopContainer web#0, grace 20 s
00:38.0 proc  web#0 exits 137 (Error)
00:38.0 call  StopPodSandbox 0
00:38.0 call  RemoveContainer web#0
00:38.0 call  RemovePodSandbox 0
00:38.0 gone  nothing is left of the pod
