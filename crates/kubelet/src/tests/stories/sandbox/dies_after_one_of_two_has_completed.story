In a new sandbox only containers start that have not succeeded yet

pod job
  restartPolicy: OnFailure
  containers:
  - {name: done, image: "app:1"}
  - {name: busy, image: "app:1"}

first  container done: exits 0 after 5s
at 20s  sandbox dies
until 30s
---
00:00.0 state Pending: busy ContainerCreating, done ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container done: it has not run yet
00:00.0 why   starts container busy: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer done#0
00:00.0 call  StartContainer done#0
00:00.0 call  CreateContainer busy#0
00:00.0 call  StartContainer busy#0
00:00.0 why   everything runs as specified
00:00.0 state Running: busy Running, done Running
00:00.0 cond  Ready True
00:05.0 proc  done#0 exits 0 (Completed)
00:05.0 state Running: busy Running, done Completed(0)
00:05.0 cond  Ready False, ContainersNotReady: containers with unready status: [done]
00:20.0 then  sandbox dies
00:20.0 why   sandbox 0 is not ready
00:20.0 why   stops container busy: the pod's sandbox is replaced
00:20.0 cond  PodReadyToStartContainers False
00:20.0 event Normal Killing busy: Stopping container busy
00:20.0 call  StopContainer busy#0, grace 30 s
00:20.0 proc  busy#0 gets SIGTERM
00:20.0 proc  busy#0 exits 143 (Error)
00:20.0 call  StopPodSandbox 0
00:20.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:20.0 call  RunPodSandbox 1
00:20.0 why   starts container busy: its sandbox was replaced
00:20.0 state Running: busy Error(143), done Completed(0)
00:20.0 cond  PodReadyToStartContainers True
00:20.0 call  CreateContainer busy#1
00:20.0 call  StartContainer busy#1
00:20.0 why   everything runs as specified
00:20.0 state Running: busy Running x1, done Completed(0)
