/* Shows push messages and opens the page that they link to. It decides nothing. */
"use strict";

self.addEventListener("push", (event) => {
  let said = {};
  try {
    said = event.data.json();
  } catch {
    // Every push must show something; the page has the rest.
  }
  const shown = self.registration.showNotification(String(said.title || "Counterseal"), {
    body: String(said.body || ""),
    tag: String(said.tag || ""),
    data: { path: String(said.path || "/queue/") },
  });
  event.waitUntil(shown);
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { origin } = self.location;
  const url = new URL(event.notification.data.path, origin);
  event.waitUntil(self.clients.openWindow(url.origin === origin ? url.href : origin));
});
