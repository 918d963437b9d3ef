The agent dies while an init container runs, which exits before the next agent starts

pod web
  initContainers:
  - {name: config, image: "app:1"}
  - {name: schema, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 10s
first  container schema: exits 0 after 2s
at 5s  agent dies
at 30s  agent starts
until 40s
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
00:05.0 then  agent dies
00:10.0 proc  config#0 exits 0 (Completed)
00:30.0 then  agent starts
00:30.0 why   starts container schema: it has not run yet
00:30.0 state Pending: config Completed(0), schema PodInitializing, web PodInitializing
00:30.0 cond  Initialized False, ContainersNotInitialized: containers with incomplete status: [schema]
00:30.0 call  CreateContainer schema#0
00:30.0 call  StartContainer schema#0
00:30.0 why   waits for init container schema to exit
00:30.0 state Pending: config Completed(0), schema Running, web PodInitializing
00:32.0 proc  schema#0 exits 0 (Completed)
00:32.0 why   starts container web: it has not run yet
00:32.0 state Pending: config Completed(0), schema Completed(0), web PodInitializing
00:32.0 cond  Initialized True
00:32.0 call  CreateContainer web#0
00:32.0 call  StartContainer web#0
00:32.0 why   everything runs as specified
00:32.0 state Running: config Completed(0), schema Completed(0), web Running
00:32.0 cond  Ready True
