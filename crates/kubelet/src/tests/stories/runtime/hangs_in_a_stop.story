The runtime hangs in a stop: the call is repeated

pod web
  terminationGracePeriodSeconds: 10
  containers:
  - {name: web, image: "app:1"}

at 10s  runtime hangs in StopContainer of web
at 20s  manifest is removed
at 4m  runtime goes on
until 5m
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
00:10.0 then  runtime hangs in StopContainer of web
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 why   stops container web: the pod terminates
00:20.0 state Running, ends within 10 s: web Running
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 10 s
02:30.0 call  StopContainer web#0 failed: StopContainer: no answer within 2m10s
02:30.0 event Warning FailedKillPod error killing pod: failed to "KillContainer" for "web" with KillContainerError: "StopContainer: no answer within 2m10s"
02:31.0 why   stops container web: the pod terminates
02:31.0 event Normal Killing web: Stopping container web
02:31.0 call  StopContainer web#0, grace 2 s
04:00.0 then  runtime goes on
04:00.0 proc  web#0 gets SIGTERM
04:00.0 proc  web#0 exits 143 (Error)
04:00.0 call  StopPodSandbox 0
04:00.0 state Running, ends within 10 s: web Error(143)
04:00.0 cond  PodReadyToStartContainers False
04:00.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
04:00.0 call  RemoveContainer web#0
04:00.0 call  RemovePodSandbox 0
04:00.0 gone  nothing is left of the pod
