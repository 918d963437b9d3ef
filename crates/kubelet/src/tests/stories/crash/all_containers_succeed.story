All containers exit with 0: the pod has succeeded, and is complete rather than unready

pod job
  restartPolicy: Never
  containers:
  - {name: first, image: "app:1"}
  - {name: last, image: "app:1"}

first  container first: exits 0 after 2s
first  container last: exits 0 after 5s
until 10s
---
00:00.0 state Pending: first ContainerCreating, last ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container first: it has not run yet
00:00.0 why   starts container last: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer first#0
00:00.0 call  StartContainer first#0
00:00.0 call  CreateContainer last#0
00:00.0 call  StartContainer last#0
00:00.0 why   everything runs as specified
00:00.0 state Running: first Running, last Running
00:00.0 cond  Ready True
00:02.0 proc  first#0 exits 0 (Completed)
00:02.0 state Running: first Completed(0), last Running
00:02.0 cond  Ready False, ContainersNotReady: containers with unready status: [first]
00:05.0 proc  last#0 exits 0 (Completed)
00:05.0 why   all containers have exited and none will be restarted
00:05.0 state Succeeded: first Completed(0), last Completed(0)
00:05.0 cond  Ready False, PodCompleted
00:05.0 call  StopPodSandbox 0
00:05.0 cond  PodReadyToStartContainers False
