/* Passkeys: a form with a part that has data-passkey asks the authenticator before it is
   sent without a password or code, and sends the answer along. */
"use strict";

(() => {
  const Key = window.PublicKeyCredential;
  if (!Key?.parseRequestOptionsFromJSON) return;
  document.documentElement.dataset.passkeys = "";

  const ask = async (form, address, submitter) => {
    const data = new FormData(form, submitter);
    data.set("at", new URL(form.getAttribute("action") || location.href, location.href).pathname);
    const answer = await fetch(address, { method: "POST", body: data });
    if (!answer.ok || answer.redirected) throw new Error();
    const { create, get } = await answer.json();
    return JSON.stringify(await (create
      ? navigator.credentials.create({ publicKey: Key.parseCreationOptionsFromJSON(create) })
      : navigator.credentials.get({ publicKey: Key.parseRequestOptionsFromJSON(get) })));
  };

  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    const part = form.querySelector("[data-passkey]");
    const { passkey: field, password, one_time_code, code, fresh } = form.elements;
    if (!part || field.value) return;
    const other = [password, one_time_code, code].some((typed) => typed?.value) || fresh?.checked;
    const needsBoth = part.dataset.besides && !code.value;
    if (submitter !== part && !needsBoth && other) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const problem = form.querySelector("[data-problem]");
    const tell = (text, look) => Object.assign(problem, { textContent: text, className: look });
    tell("", "");
    ask(form, part.dataset.passkey, submitter).then((answer) => {
      field.value = answer;
      form.requestSubmit(submitter);
    }, () => tell("No passkey was used, and nothing was sent. Try again.", "error"))
      .finally(() => { field.value = ""; });
  }, true);
})();
