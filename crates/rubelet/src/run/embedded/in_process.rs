//! A runtime in the same process, called like one behind a socket: each call has a deadline and is
//! observed. A call that exceeds its deadline continues in the runtime, and may still take effect.

use std::{future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_cri::{
    Call, CriError, CriErrorKind, CriResult, EventStream, ImageService, RuntimeService, v1,
};
use rubelet_cri_grpc::{CallObserver, Timeouts};
use tokio::time::{Instant, timeout};

/// An implementor of one of the traits, with deadlines and an observer.
#[derive(Clone)]
pub(crate) struct InProcess<S: ?Sized> {
    pub(crate) service: Arc<S>,
    pub(crate) timeouts: Timeouts,
    pub(crate) observer: Arc<dyn CallObserver>,
}

impl<S: ?Sized> InProcess<S> {
    async fn limited<R>(
        &self,
        call: &'static str,
        deadline: Option<Duration>,
        answer: impl Future<Output = CriResult<R>>,
    ) -> CriResult<R> {
        let mut ended = CallEnd {
            call,
            start: Instant::now(),
            outcome: Err(CriErrorKind::Canceled),
            observer: self.observer.as_ref(),
        };
        let result = match deadline {
            None => answer.await,
            Some(limit) => timeout(limit, answer).await.unwrap_or_else(|_| {
                let kind = CriErrorKind::DeadlineExceeded(limit);
                Err(CriError::new(call, kind, ""))
            }),
        };
        ended.outcome = result.as_ref().map(drop).map_err(|error| error.kind);
        result
    }
}

/// Notifies the observer of a call's end, also when its future is dropped.
struct CallEnd<'a> {
    call: &'static str,
    start: Instant,
    outcome: Result<(), CriErrorKind>,
    observer: &'a dyn CallObserver,
}

impl Drop for CallEnd<'_> {
    fn drop(&mut self) {
        self.observer
            .call_ended(self.call, self.start.elapsed(), self.outcome);
    }
}

macro_rules! calls {
    (
        { $($method:ident $request:ident $response:ident;)* }
        { $($list:ident $list_request:ident $list_response:ident;)* }
        $trait:ident { $($by_hand:tt)* }
    ) => {
        #[async_trait]
        impl<S: $trait + ?Sized> $trait for InProcess<S> {
            $(async fn $method(&self, request: v1::$request) -> CriResult<v1::$response> {
                let deadline = request.deadline(&self.timeouts);
                let answer = self.service.$method(request);
                self.limited(v1::$request::NAME, deadline, answer).await
            })*
            $(async fn $list(&self, request: v1::$list_request) -> CriResult<v1::$list_response> {
                let deadline = request.deadline(&self.timeouts);
                let answer = self.service.$list(request);
                self.limited(v1::$list_request::NAME, deadline, answer).await
            })*
            $($by_hand)*
        }
    };
}

rubelet_cri::runtime_methods! { calls! RuntimeService {
    fn container_events(&self) -> EventStream {
        self.service.container_events()
    }
} }

rubelet_cri::image_methods! { calls! ImageService {} }

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Hangs in everything but `version`.
    struct Hangs;

    #[async_trait]
    impl RuntimeService for Hangs {
        async fn version(&self, _: v1::VersionRequest) -> CriResult<v1::VersionResponse> {
            Ok(v1::VersionResponse::default())
        }

        async fn status(&self, _: v1::StatusRequest) -> CriResult<v1::StatusResponse> {
            std::future::pending().await
        }
    }

    #[derive(Default)]
    struct SeenCalls(Mutex<Vec<(&'static str, Result<(), CriErrorKind>)>>);

    impl CallObserver for SeenCalls {
        fn call_ended(&self, call: &'static str, _: Duration, outcome: Result<(), CriErrorKind>) {
            self.0.lock().unwrap().push((call, outcome));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_ends_at_its_deadline_and_each_is_observed() {
        let seen = Arc::new(SeenCalls::default());
        let inside = InProcess {
            service: Arc::new(Hangs),
            timeouts: Timeouts {
                request: Duration::from_secs(5),
            },
            observer: Arc::clone(&seen) as _,
        };
        inside.version(v1::VersionRequest::default()).await.unwrap();
        let late = inside.status(v1::StatusRequest::default()).await;
        let kind = CriErrorKind::DeadlineExceeded(Duration::from_secs(5));
        assert_eq!(late.unwrap_err().kind, kind);
        let seen = seen.0.lock().unwrap();
        assert_eq!(*seen, [("Version", Ok(())), ("Status", Err(kind))]);
    }
}
