Sidecars start in order before the containers, and stop after them in reverse order

pod web
  initContainers:
  - {name: mesh, image: "app:1", restartPolicy: Always}
  - {name: log, image: "app:1", restartPolicy: Always}
  containers:
  - {name: web, image: "app:1"}

first  container web: runs, ends 3s after SIGTERM
first  container log: runs, ends 2s after SIGTERM
first  container mesh: runs, ends 1s after SIGTERM
at 10s  manifest is removed
until 20s
---
00:00.0 state Pending: mesh PodInitializing, log PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container log: it has not run yet
00:00.0 state Pending: mesh Running, log PodInitializing, web PodInitializing
00:00.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [log]
00:00.0 call  CreateContainer log#0
00:00.0 call  StartContainer log#0
00:00.0 why   starts container web: it has not run yet
00:00.0 state Pending: mesh Running, log Running, web PodInitializing
00:00.0 cond  Initialized True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: mesh Running, log Running, web Running
00:00.0 cond  Ready True
00:10.0 then  manifest is removed
00:10.0 why   no source defines the pod any more
00:10.0 why   stops container web: the pod terminates
00:10.0 why   stops container log: the pod terminates
00:10.0 why   stops container mesh: the pod terminates
00:10.0 state Running, ends within 30 s: mesh Running, log Running, web Running
00:10.0 event Normal Killing web: Stopping container web
00:10.0 event Normal Killing log: Stopping container log
00:10.0 event Normal Killing mesh: Stopping container mesh
00:10.0 call  StopContainer web#0, grace 30 s
00:10.0 proc  web#0 gets SIGTERM
00:13.0 proc  web#0 exits 143 (Error)
00:13.0 call  StopContainer log#0, grace 27 s
00:13.0 proc  log#0 gets SIGTERM
00:15.0 proc  log#0 exits 143 (Error)
00:15.0 call  StopContainer mesh#0, grace 25 s
00:15.0 proc  mesh#0 gets SIGTERM
00:16.0 proc  mesh#0 exits 143 (Error)
00:16.0 call  StopPodSandbox 0
00:16.0 state Running, ends within 30 s: mesh Error(143), log Error(143), web Error(143)
00:16.0 cond  PodReadyToStartContainers False
00:16.0 cond  Ready False, ContainersNotReady: containers with unready status: [mesh log web]
00:16.0 call  RemoveContainer web#0
00:16.0 call  RemoveContainer log#0
00:16.0 call  RemoveContainer mesh#0
00:16.0 call  RemovePodSandbox 0
00:16.0 gone  nothing is left of the pod
