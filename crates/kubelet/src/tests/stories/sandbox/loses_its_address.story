A sandbox without an address is replaced

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  sandbox loses its address
at 21s  container web exits 1
at 25s  sandbox has its address again
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
00:20.0 then  sandbox loses its address
00:21.0 then  container web exits 1
00:21.0 proc  web#0 exits 1 (Error)
00:21.0 why   sandbox 0 has no address
00:21.0 state Running: web Error(1)
00:21.0 cond  PodReadyToStartContainers False
00:21.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:21.0 call  StopPodSandbox 0
00:21.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:21.0 call  RunPodSandbox 1
00:21.0 why   sandbox 1 has no address
00:21.0 why   creating the sandbox failed; next attempt at 00:22.0
00:21.0 call  StopPodSandbox 1
00:21.0 why   sandbox 1 is not ready
00:22.0 call  StopPodSandbox 1
00:22.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:22.0 call  RunPodSandbox 2
00:22.0 why   sandbox 2 has no address
00:22.0 why   creating the sandbox failed; next attempt at 00:23.0
00:22.0 call  StopPodSandbox 2
00:22.0 why   sandbox 2 is not ready
00:23.0 call  StopPodSandbox 2
00:23.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:23.0 call  RunPodSandbox 3
00:23.0 why   sandbox 3 has no address
00:23.0 why   creating the sandbox failed; next attempt at 00:33.0
00:23.0 call  StopPodSandbox 3
00:23.0 why   sandbox 3 is not ready
00:25.0 then  sandbox has its address again
00:33.0 call  StopPodSandbox 3
00:33.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:33.0 call  RunPodSandbox 4
00:33.0 why   starts container web: its sandbox was replaced
00:33.0 cond  PodReadyToStartContainers True
00:33.0 call  CreateContainer web#1
00:33.0 call  StartContainer web#1
00:33.0 call  RemovePodSandbox 3
00:33.0 call  RemovePodSandbox 2
00:33.0 call  RemovePodSandbox 1
00:33.0 why   everything runs as specified
00:33.0 state Running: web Running x1
00:33.0 cond  Ready True
