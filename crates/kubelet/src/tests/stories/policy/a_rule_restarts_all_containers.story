A worker requests a restart of the whole pod by its exit code: in the same sandbox, from init on

pod job
  restartPolicy: Never
  initContainers:
  - {name: setup, image: "app:1"}
  containers:
  - name: worker
    image: app:1
    restartPolicy: Never
    restartPolicyRules:
    - {action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}
  - {name: helper, image: "app:1"}

first  container setup: exits 0 after 1s
first  container worker: exits 42 after 10s; then exits 0 after 10s
first  container helper: runs; then exits 0 after 5s
until 40s
---
00:00.0 state Pending: setup PodInitializing, helper PodInitializing, worker PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container setup: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer setup#0
00:00.0 call  StartContainer setup#0
00:00.0 why   waits for init container setup to exit
00:00.0 state Pending: setup Running, helper PodInitializing, worker PodInitializing
00:01.0 proc  setup#0 exits 0 (Completed)
00:01.0 why   starts container worker: it has not run yet
00:01.0 why   starts container helper: it has not run yet
00:01.0 state Pending: setup Completed(0), helper PodInitializing, worker PodInitializing
00:01.0 cond  Initialized True
00:01.0 call  CreateContainer worker#0
00:01.0 call  StartContainer worker#0
00:01.0 call  CreateContainer helper#0
00:01.0 call  StartContainer helper#0
00:01.0 why   everything runs as specified
00:01.0 state Running: setup Completed(0), helper Running, worker Running
00:01.0 cond  Ready True
00:11.0 proc  worker#0 exits 42 (Error)
00:11.0 why   restarts all containers because container worker exited with code 42
00:11.0 state Running: setup Completed(0), helper Running, worker Error(42)
00:11.0 cond  Ready False, ContainersNotReady: containers with unready status: [worker]
00:11.0 cond  AllContainersRestarting True, RestartAllContainersStarted: container exited with restart policy rule
00:11.0 event Normal Killing helper: Stopping container helper
00:11.0 call  StopContainer helper#0, grace 2 s
00:11.0 proc  helper#0 gets SIGTERM
00:11.0 proc  helper#0 exits 143 (Error)
00:11.0 state Running: setup Completed(0), helper Error(143), worker Error(42)
00:11.0 call  RemoveContainer helper#0
00:11.0 call  RemoveContainer setup#0
00:11.0 call  RemoveContainer worker#0
00:11.0 why   starts container setup: all containers are restarted
00:11.0 state Running: setup RestartingAllContainers after RestartingAllContainers(0), helper RestartingAllContainers after RestartingAllContainers(143), worker RestartingAllContainers after Error(42)
00:11.0 cond  AllContainersRestarting False
00:11.0 call  CreateContainer setup#1
00:11.0 call  StartContainer setup#1
00:11.0 why   waits for init container setup to exit
00:11.0 state Pending: setup Running x1, helper PodInitializing after RestartingAllContainers(143), worker PodInitializing after Error(42)
00:12.0 proc  setup#1 exits 0 (Completed)
00:12.0 why   starts container worker: it has not run yet
00:12.0 why   starts container helper: it has not run yet
00:12.0 state Running: setup Completed(0) x1, helper PodInitializing after RestartingAllContainers(143), worker PodInitializing after Error(42)
00:12.0 call  CreateContainer worker#1
00:12.0 call  StartContainer worker#1
00:12.0 call  CreateContainer helper#1
00:12.0 call  StartContainer helper#1
00:12.0 why   everything runs as specified
00:12.0 state Running: setup Completed(0) x1, helper Running x1, worker Running x1
00:12.0 cond  Ready True
00:17.0 proc  helper#1 exits 0 (Completed)
00:17.0 state Running: setup Completed(0) x1, helper Completed(0) x1, worker Running x1
00:17.0 cond  Ready False, ContainersNotReady: containers with unready status: [helper]
00:22.0 proc  worker#1 exits 0 (Completed)
00:22.0 why   all containers have exited and none will be restarted
00:22.0 state Succeeded: setup Completed(0) x1, helper Completed(0) x1, worker Completed(0) x1
00:22.0 cond  Initialized True, PodCompleted
00:22.0 cond  Ready False, PodCompleted
00:22.0 cond  AllContainersRestarting False, PodCompleted
00:22.0 call  StopPodSandbox 0
00:22.0 cond  PodReadyToStartContainers False
