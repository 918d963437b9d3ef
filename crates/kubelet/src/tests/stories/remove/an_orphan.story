A manifest is removed while no agent runs: its pod ends with its own grace period, once all sources were read

pod web
  terminationGracePeriodSeconds: 7
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ignores SIGTERM
at 20s  agent dies
at 21s  manifest is removed
at 22s  manifests can't be read
at 30s  agent starts
at 60s  manifests can be read
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
00:20.0 then  agent dies
00:21.0 then  manifest is removed
00:22.0 then  manifests can't be read
00:30.0 then  agent starts
01:00.0 then  manifests can be read
01:00.0 why   no source defines the pod any more
01:00.0 why   stops container web: the pod terminates
01:00.0 event Normal Killing web: Stopping container web
01:00.0 call  StopContainer web#0, grace 7 s
01:00.0 proc  web#0 gets SIGTERM
01:07.0 proc  web#0 exits 137 (Error)
01:07.0 call  StopPodSandbox 0
01:07.0 call  RemoveContainer web#0
01:07.0 call  RemovePodSandbox 0
01:07.0 gone  nothing is left of the pod
