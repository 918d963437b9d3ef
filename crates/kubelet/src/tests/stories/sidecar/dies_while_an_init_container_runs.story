A sidecar dies while the init container after it runs: it restarts, init continues

pod web
  initContainers:
  - {name: mesh, image: "app:1", restartPolicy: Always}
  - {name: schema, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container schema: exits 0 after 20s
at 10s  container mesh exits 1
until 30s
---
00:00.0 state Pending: mesh PodInitializing, schema PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container schema: it has not run yet
00:00.0 state Pending: mesh Running, schema PodInitializing, web PodInitializing
00:00.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [schema]
00:00.0 call  CreateContainer schema#0
00:00.0 call  StartContainer schema#0
00:00.0 why   waits for init container schema to exit
00:00.0 state Pending: mesh Running, schema Running, web PodInitializing
00:10.0 then  container mesh exits 1
00:10.0 proc  mesh#0 exits 1 (Error)
00:10.0 why   starts container mesh: it exited with code 1
00:10.0 state Pending: mesh Error(1), schema Running, web PodInitializing
00:10.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [mesh schema]
00:10.0 call  CreateContainer mesh#1
00:10.0 call  StartContainer mesh#1
00:10.0 state Pending: mesh Running x1, schema Running, web PodInitializing
00:10.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [schema]
00:20.0 proc  schema#0 exits 0 (Completed)
00:20.0 why   starts container web: it has not run yet
00:20.0 state Pending: mesh Running x1, schema Completed(0), web PodInitializing
00:20.0 cond  Initialized True
00:20.0 call  CreateContainer web#0
00:20.0 call  StartContainer web#0
00:20.0 why   everything runs as specified
00:20.0 state Running: mesh Running x1, schema Completed(0), web Running
00:20.0 cond  Ready True
