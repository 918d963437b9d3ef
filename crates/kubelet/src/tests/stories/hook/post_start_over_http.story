A postStart hook over HTTP that can't reach its server stops the container

pod job
  restartPolicy: Never
  containers:
  - name: job
    image: app:1
    lifecycle: {postStart: {httpGet: {path: /register, port: 8080}}}

first  network fails: connect: connection refused
until 10s
---
00:00.0 state Pending: job ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container job: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer job#0
00:00.0 call  StartContainer job#0
00:00.0 event Warning FailedPostStartHook job: PostStartHook failed
00:00.0 event Normal Killing job: FailedPostStartHook
00:00.0 call  StopContainer job#0, grace 30 s
00:00.0 proc  job#0 gets SIGTERM
00:00.0 proc  job#0 exits 143 (Error)
00:00.0 why   all containers have exited and none will be restarted
00:00.0 state Failed: job Error(143)
00:00.0 cond  Ready False, PodFailed
00:00.0 call  StopPodSandbox 0
00:00.0 cond  PodReadyToStartContainers False
