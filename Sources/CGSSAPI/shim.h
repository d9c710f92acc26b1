#ifndef WATCHWORD_CGSSAPI_SHIM_H
#define WATCHWORD_CGSSAPI_SHIM_H

#include <gssapi/gssapi.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static gss_OID_desc watchword_gss_krb5 = {9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"};
static gss_OID_desc watchword_gss_spnego = {6, "\x2b\x06\x01\x05\x05\x02"};
// GSS_KRB5_NT_PRINCIPAL_NAME (RFC 1964 section 2.1.1).
static gss_OID_desc watchword_gss_principal = {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"};

static inline int watchword_gss_failed(OM_uint32 major) { return GSS_ERROR(major) != 0; }

// Imports the principal HTTP/`host`. The host name is not canonicalized: a malicious name server must not choose the service.
static OM_uint32 watchword_gss_import_service(OM_uint32 *minor, const char *host, gss_name_t *name) {
    krb5_context context = NULL;
    krb5_principal principal = NULL;
    char *text = NULL;
    OM_uint32 major = GSS_S_FAILURE;
    krb5_error_code code = krb5_init_context(&context);
    if (code == 0) code = krb5_sname_to_principal(context, host, "HTTP", KRB5_NT_UNKNOWN, &principal);
    if (code == 0) code = krb5_unparse_name(context, principal, &text);
    *minor = (OM_uint32)code;
    if (code == 0) {
        gss_buffer_desc buffer = {strlen(text), text};
        major = gss_import_name(minor, &buffer, &watchword_gss_principal, name);
    }
    if (text != NULL) krb5_free_unparsed_name(context, text);
    if (principal != NULL) krb5_free_principal(context, principal);
    if (context != NULL) krb5_free_context(context);
    return major;
}

// Acquires credentials for the user's tickets that are limited to Kerberos: SPNEGO never offers NTLM, even if it is installed.
static OM_uint32 watchword_gss_acquire_kerberos_only(OM_uint32 *minor, gss_cred_id_t *credential) {
    gss_OID_set_desc kerberos = {1, &watchword_gss_krb5};
    gss_OID_set_desc spnego = {1, &watchword_gss_spnego};
    gss_cred_id_t ticket = GSS_C_NO_CREDENTIAL;
    OM_uint32 ignored;
    OM_uint32 major = gss_acquire_cred(minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &kerberos, GSS_C_INITIATE, &ticket, NULL, NULL);
    if (GSS_ERROR(major)) return major;
    gss_release_cred(&ignored, &ticket);
    major = gss_acquire_cred(minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &spnego, GSS_C_INITIATE, credential, NULL, NULL);
    if (GSS_ERROR(major)) return major;
    major = gss_set_neg_mechs(minor, *credential, &kerberos);
    if (GSS_ERROR(major)) gss_release_cred(&ignored, credential);
    return major;
}

// Performs one step of a SPNEGO login. `input` is NULL in the first step; `binding` is NULL for no channel binding.
static OM_uint32 watchword_gss_step(
    OM_uint32 *minor, gss_cred_id_t credential, gss_ctx_id_t *context, gss_name_t name, int delegates,
    gss_buffer_t binding, gss_buffer_t input, gss_buffer_t output) {
    struct gss_channel_bindings_struct channel = {0};
    if (binding != NULL) channel.application_data = *binding;
    return gss_init_sec_context(
        minor, credential, context, name, &watchword_gss_spnego, GSS_C_MUTUAL_FLAG | (delegates ? GSS_C_DELEG_FLAG : 0),
        0, binding != NULL ? &channel : GSS_C_NO_CHANNEL_BINDINGS, input, NULL, output, NULL, NULL);
}

#endif
