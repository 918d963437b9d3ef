The sandbox dies while the second init container runs: init restarts with the first one

pod web
  initContainers:
  - {name: config, image: "app:1"}
  - {name: schema, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 2s
first  container schema: exits 0 after 10s
at 5s  sandbox dies
until 25s
---
00:00.0 state Pending: config PodInitializing, schema PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container config: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer config#0
00:00.0 call  StartContainer config#0
00:00.0 why   waits for init container config to exit
00:00.0 state Pending: config Running, schema PodInitializing, web PodInitializing
00:02.0 proc  config#0 exits 0 (Completed)
00:02.0 why   starts container schema: it has not run yet
00:02.0 state Pending: config Completed(0), schema PodInitializing, web PodInitializing
00:02.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [schema]
00:02.0 call  CreateContainer schema#0
00:02.0 call  StartContainer schema#0
00:02.0 why   waits for init container schema to exit
00:02.0 state Pending: config Completed(0), schema Running, web PodInitializing
00:05.0 then  sandbox dies
00:05.0 why   sandbox 0 is not ready
00:05.0 why   stops container schema: the pod's sandbox is replaced
00:05.0 cond  PodReadyToStartContainers False
00:05.0 event Normal Killing schema: Stopping container schema
00:05.0 call  StopContainer schema#0, grace 30 s
00:05.0 proc  schema#0 gets SIGTERM
00:05.0 proc  schema#0 exits 143 (Error)
00:05.0 call  StopPodSandbox 0
00:05.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:05.0 call  RunPodSandbox 1
00:05.0 why   starts container config: its sandbox was replaced
00:05.0 state Pending: config Completed(0), schema Error(143), web PodInitializing
00:05.0 cond  PodReadyToStartContainers True
00:05.0 call  CreateContainer config#1
00:05.0 call  StartContainer config#1
00:05.0 why   waits for init container config to exit
00:05.0 state Pending: config Running x1, schema Error(143), web PodInitializing
00:05.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [config schema]
00:07.0 proc  config#1 exits 0 (Completed)
00:07.0 why   starts container schema: its sandbox was replaced
00:07.0 why   removes a dead container
00:07.0 state Pending: config Completed(0) x1, schema Error(143), web PodInitializing
00:07.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [schema]
00:07.0 call  CreateContainer schema#1
00:07.0 call  StartContainer schema#1
00:07.0 call  RemoveContainer config#0
00:07.0 why   waits for init container schema to exit
00:07.0 state Pending: config Completed(0) x1, schema Running x1, web PodInitializing
00:17.0 proc  schema#1 exits 0 (Completed)
00:17.0 why   starts container web: it has not run yet
00:17.0 why   removes a dead container
00:17.0 state Pending: config Completed(0) x1, schema Completed(0) x1, web PodInitializing
00:17.0 cond  Initialized True
00:17.0 call  CreateContainer web#0
00:17.0 call  StartContainer web#0
00:17.0 call  RemoveContainer schema#0
00:17.0 call  RemovePodSandbox 0
00:17.0 why   everything runs as specified
00:17.0 state Running: config Completed(0) x1, schema Completed(0) x1, web Running
00:17.0 cond  Ready True
