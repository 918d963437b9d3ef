A pod that is not restarted runs until its last container has exited; one failure makes it Failed

pod job
  restartPolicy: Never
  containers:
  - {name: ok, image: "app:1"}
  - {name: bad, image: "app:1"}

first  container ok: exits 0 after 10s
first  container bad: exits 1 after 3s
until 20s
---
00:00.0 state Pending: bad ContainerCreating, ok ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container ok: it has not run yet
00:00.0 why   starts container bad: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer ok#0
00:00.0 call  StartContainer ok#0
00:00.0 call  CreateContainer bad#0
00:00.0 call  StartContainer bad#0
00:00.0 why   everything runs as specified
00:00.0 state Running: bad Running, ok Running
00:00.0 cond  Ready True
00:03.0 proc  bad#0 exits 1 (Error)
00:03.0 state Running: bad Error(1), ok Running
00:03.0 cond  Ready False, ContainersNotReady: containers with unready status: [bad]
00:10.0 proc  ok#0 exits 0 (Completed)
00:10.0 why   all containers have exited and none will be restarted
00:10.0 state Failed: bad Error(1), ok Completed(0)
00:10.0 cond  Ready False, PodFailed
00:10.0 call  StopPodSandbox 0
00:10.0 cond  PodReadyToStartContainers False
