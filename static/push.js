/* Registers this browser for push messages: the button on the page of notifications. */
"use strict";

(() => {
  const form = document.getElementById("register-browser");
  const problem = document.getElementById("push-problem");
  if (!form || !("serviceWorker" in navigator) || !("PushManager" in window)) return;

  async function activate(registration) {
    const worker = registration.installing || registration.waiting;
    if (!worker || registration.active) return;
    await new Promise((resolve) => {
      worker.addEventListener("statechange", () => {
        if (worker.state === "activated") resolve();
      });
    });
  }

  async function subscribe() {
    if ((await Notification.requestPermission()) !== "granted") {
      throw new Error("The browser does not allow notifications from this site.");
    }
    const registration = await navigator.serviceWorker.register(form.dataset.worker);
    await activate(registration);
    const found = await registration.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: form.dataset.key,
    });
    const { endpoint, keys } = found.toJSON();
    form.elements.endpoint.value = endpoint;
    form.elements.p256dh.value = keys.p256dh;
    form.elements.auth.value = keys.auth;
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => {
    if (form.elements.endpoint.value) return;
    event.preventDefault();
    problem.textContent = "";
    subscribe().then(
      () => form.requestSubmit(),
      (error) => {
        problem.textContent = error.message;
      },
    );
  });
})();
