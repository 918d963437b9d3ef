A sidecar that dies restarts; the container beside it is left alone

pod web
  initContainers:
  - {name: mesh, image: "app:1", restartPolicy: Always}
  containers:
  - {name: web, image: "app:1"}

at 10s  container mesh exits 1
at 20s  container mesh exits 1
until 35s
---
00:00.0 state Pending: mesh PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container web: it has not run yet
00:00.0 state Pending: mesh Running, web PodInitializing
00:00.0 cond  Initialized True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: mesh Running, web Running
00:00.0 cond  Ready True
00:10.0 then  container mesh exits 1
00:10.0 proc  mesh#0 exits 1 (Error)
00:10.0 why   starts container mesh: it exited with code 1
00:10.0 state Running: mesh Error(1), web Running
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [mesh]
00:10.0 call  CreateContainer mesh#1
00:10.0 call  StartContainer mesh#1
00:10.0 why   everything runs as specified
00:10.0 state Running: mesh Running x1, web Running
00:10.0 cond  Ready True
00:20.0 then  container mesh exits 1
00:20.0 proc  mesh#1 exits 1 (Error)
00:20.0 why   container mesh is in back-off until 00:30.0
00:20.0 why   removes a dead container
00:20.0 state Running: mesh CrashLoopBackOff x1 after Error(1), web Running
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [mesh]
00:20.0 event Warning BackOff mesh: Back-off restarting failed container mesh in pod web-n_default(UID)
00:20.0 call  RemoveContainer mesh#0
00:30.0 why   starts container mesh: it exited with code 1
00:30.0 call  CreateContainer mesh#2
00:30.0 call  StartContainer mesh#2
00:30.0 why   everything runs as specified
00:30.0 state Running: mesh Running x2, web Running
00:30.0 cond  Ready True
