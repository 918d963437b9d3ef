A job is complete when its containers are, although a sidecar still runs

pod job
  restartPolicy: Never
  initContainers:
  - {name: mesh, image: "app:1", restartPolicy: Always}
  containers:
  - {name: job, image: "app:1"}

first  container job: exits 0 after 10s
until 20s
---
00:00.0 state Pending: mesh PodInitializing, job PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container mesh: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer mesh#0
00:00.0 call  StartContainer mesh#0
00:00.0 why   starts container job: it has not run yet
00:00.0 state Pending: mesh Running, job PodInitializing
00:00.0 cond  Initialized True
00:00.0 call  CreateContainer job#0
00:00.0 call  StartContainer job#0
00:00.0 why   everything runs as specified
00:00.0 state Running: mesh Running, job Running
00:00.0 cond  Ready True
00:10.0 proc  job#0 exits 0 (Completed)
00:10.0 why   all containers have exited and none will be restarted
00:10.0 why   stops container mesh: the pod terminates
00:10.0 state Running: mesh Running, job Completed(0)
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [job]
00:10.0 event Normal Killing mesh: Stopping container mesh
00:10.0 call  StopContainer mesh#0, grace 30 s
00:10.0 proc  mesh#0 gets SIGTERM
00:10.0 proc  mesh#0 exits 143 (Error)
00:10.0 call  StopPodSandbox 0
00:10.0 state Succeeded: mesh Error(143), job Completed(0)
00:10.0 cond  PodReadyToStartContainers False
00:10.0 cond  Initialized True, PodCompleted
00:10.0 cond  Ready False, PodCompleted
