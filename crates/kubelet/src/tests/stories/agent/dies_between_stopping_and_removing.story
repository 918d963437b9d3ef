The agent dies when the pod is stopped but not removed yet

pod web
  containers:
  - {name: web, image: "app:1"}

at 10s  runtime hangs in RemoveContainer of web
at 11s  manifest is removed
at 15s  agent dies
at 16s  runtime goes on
at 20s  agent starts
until 40s
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
00:10.0 then  runtime hangs in RemoveContainer of web
00:11.0 then  manifest is removed
00:11.0 why   no source defines the pod any more
00:11.0 why   stops container web: the pod terminates
00:11.0 state Running, ends within 30 s: web Running
00:11.0 event Normal Killing web: Stopping container web
00:11.0 call  StopContainer web#0, grace 30 s
00:11.0 proc  web#0 gets SIGTERM
00:11.0 proc  web#0 exits 143 (Error)
00:11.0 call  StopPodSandbox 0
00:11.0 state Running, ends within 30 s: web Error(143)
00:11.0 cond  PodReadyToStartContainers False
00:11.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:11.0 call  RemoveContainer web#0
00:15.0 then  agent dies
00:15.0 call  RemoveContainer web#0 was given up
00:16.0 then  runtime goes on
00:20.0 then  agent starts
00:20.0 why   no source defines the pod any more
00:20.0 call  RemoveContainer web#0
00:20.0 call  RemovePodSandbox 0
00:20.0 gone  nothing is left of the pod
